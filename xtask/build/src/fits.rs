//! Whether an interpreter can install a wheel, checked as pip does, before anything is fetched or built.

use anyhow::Result;

use xtask_python::Python;
use xtask_support::refusal::refuse;
use xtask_wheel::name::{WheelName, glibc};

/// Refuses an interpreter for which pip would not install the wheel.
pub fn check(name: &WheelName, python: &Python) -> Result<()> {
    let platform_fits = |tag: &str| {
        let kind = tag.strip_suffix(&format!("_{}", python.machine));
        let glibc_fits = |it: &str| glibc(it).is_some_and(|floor| floor <= python.glibc());
        kind.is_some_and(|it| it == "linux" || glibc_fits(it))
    };
    let fits = name.python.split('.').any(|tag| tag == python.python_tag())
        && name.abi.split('.').any(|tag| tag == python.abi_tag())
        && name.platform.split('.').any(platform_fits);
    if fits {
        return Ok(());
    }
    let digits = name.python.trim_start_matches("cp");
    let (major, minor) = digits.split_at(digits.len().min(1));
    Err(refuse(format!("{name} is not for the Python at {}", python.executable.display()))
        .found(python.describe())
        .expected(format!("Python {major}.{minor} with tags {}-{}-{}", name.python, name.abi, name.platform))
        .remedy(format!("--python python{major}.{minor}, or a wheel for this Python"))
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask_python::python311;

    const OFFICIAL: &str = "torch-2.15.0-cp311-cp311-manylinux_2_28_x86_64.whl";

    #[test]
    fn another_python() {
        let fits = |name: &str| check(&WheelName::parse(name).unwrap(), &python311());
        fits(OFFICIAL).unwrap();
        let official = WheelName::parse(&OFFICIAL.replace("x86_64", "aarch64")).unwrap();
        let machine = "aarch64".to_owned();
        let python = Python { machine, ..python311() };
        check(&official, &python).unwrap();
        insta::assert_snapshot!(fits(&OFFICIAL.replace("cp311", "cp312")).unwrap_err());
        for other in [
            OFFICIAL.replace("cp311-cp311", "cp311-cp311t"),
            OFFICIAL.replace("2_28", "2_39"),
            OFFICIAL.replace("x86_64", "aarch64"),
        ] {
            assert!(fits(&other).is_err(), "{other}");
        }
    }
}

//! The kernel's list of locks, real and made up.

use std::fs;

use pinbuddy_machine::claims::MOST_CLAIMS;

use super::*;

const HERE: &str = "/";

/// The claim of `of` as `by` sees it.
fn heard(by: &Claims, of: &Claims) -> Option<Claim> {
    let text = fs::read_to_string("/proc/locks").ok()?;
    let listed_as = of.0.lock().file.as_ref().map(listed_as)?;
    let others = by.of_others(HERE.as_ref());
    // Found by its name in the list, which has other tests' claims, too.
    let only: String =
        text.lines().filter(|it| it.contains(&format!(" {listed_as} "))).map(|it| format!("{it}\n")).collect();
    let claim = claims(&only, None).first().copied()?;
    others.contains(&claim).then_some(claim)
}

#[test]
fn others_hear_what_is_held_and_a_process_does_not_hear_itself() {
    let (one, other) = (Claims::default(), Claims::default());
    assert_eq!(heard(&other, &one), None);
    one.add(5 << 20);
    one.add((3 << 20) + 1);
    let claim = heard(&other, &one).unwrap();
    assert_eq!((claim.process, claim.bytes), (std::process::id(), 9 << 20));
    assert!(now() - claim.grew < 60, "{claim:?}");
    one.take_away(5 << 20);
    assert_eq!(heard(&other, &one).unwrap().bytes, 4 << 20);
    assert_eq!(heard(&one, &one), None);
    one.take_away((3 << 20) + 1);
    assert_eq!(heard(&other, &one), None);
    // More than was ever added.
    one.take_away(1);
    one.add(1);
    assert_eq!(heard(&other, &one).unwrap().bytes, 1 << 20);
}

#[test]
fn a_program_that_closes_what_it_does_not_know_is_told_of_anew() {
    let (one, other) = (Claims::default(), Claims::default());
    one.add(2 << 20);
    let descriptor = one.0.lock().file.as_ref().unwrap().file().as_raw_fd();
    // SAFETY: the descriptor is the one above, which `Nameless` never closes by itself.
    unsafe { libc::close(descriptor) };
    one.add(3 << 20);
    assert_eq!(heard(&other, &one).unwrap().bytes, 5 << 20);
}

#[test]
fn a_child_has_no_lock() {
    let one = Claims::default();
    one.add(7 << 20);
    // SAFETY: the child only sleeps until it is killed.
    let child = unsafe {
        match libc::fork() {
            0 => loop {
                libc::pause();
            },
            child => child,
        }
    };
    let listed_as = one.0.lock().file.as_ref().map(listed_as).unwrap();
    let text = fs::read_to_string("/proc/locks").unwrap();
    // SAFETY: the process is the child above, which has not been waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    let mine: Vec<&str> = text.lines().filter(|it| it.contains(&listed_as)).collect();
    let id = format!(" {} ", std::process::id());
    assert!(mine.len() == 2 && mine.iter().all(|it| it.contains(&id)), "{text}");
    assert_eq!(heard(&Claims::default(), &one).unwrap().bytes, 7 << 20);
}

#[test]
fn what_others_write_is_read_with_distrust() {
    let line = |start: i128, end: &str| format!("1: POSIX  ADVISORY  READ 7 00:01:5 {start} {end}\n");
    let held = i128::from(HELD);
    let heard = |text: &str| claims(text, Some("00:01:99"));
    let claim = Claim { process: 7, bytes: 3 << 20, grew: 0 };
    assert_eq!(heard(&line(held, &(held + 2).to_string())), [claim]);
    for nonsense in [
        line(held, "EOF"),
        // As long as a number can be.
        line(0, &i64::MAX.to_string()),
        line(held, &i64::MAX.to_string()),
        line(held, &(held - 1).to_string()),
        line(held, &i64::MIN.to_string()),
        line(held, "99999999999999999999999"),
        line(held - 1, &(held + 2).to_string()),
        line(i128::from(TIME), &(i128::from(TIME) + 2).to_string()),
        line(held, &(held + 2).to_string()).replace("READ", "WRITE"),
        line(held, &(held + 2).to_string()).replace("1: ", "1: -> "),
        line(held, &(held + 2).to_string()).replace(" 7 ", " -1 "),
        line(held, &(held + 2).to_string()).replace(":5", ":99"),
        "1: POSIX ADVISORY READ".to_owned(),
        String::new(),
    ] {
        assert_eq!(heard(&nonsense), [], "{nonsense}");
    }
    let many: String = (0..2 * MOST_CLAIMS)
        .map(|n| line(held, &(held + 2).to_string()).replace(":5 ", &format!(":{} ", n + 100)))
        .collect();
    assert_eq!(heard(&many).len(), MOST_CLAIMS);
    assert_eq!(Claims::default().of_others("/nowhere".as_ref()), []);
}

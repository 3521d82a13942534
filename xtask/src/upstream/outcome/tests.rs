//! Invented runs and their verdicts.

use super::*;

fn run(title: &'static str, baseline: bool, outcomes: &[(&str, Outcome)]) -> Run {
    let outcomes = outcomes
        .iter()
        .map(|(name, it)| ((*name).to_owned(), it.clone()))
        .collect();
    Run {
        title,
        baseline,
        outcomes,
        served: Served::Any,
    }
}

fn expected(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_only_the_fork_fails_is_a_complaint_and_all_of_it_is_shown() {
    let failed = Outcome::Failed("AssertionError: 1 != 2".into());
    let verdict = Verdict::new(
        expected(&["test_a", "test_b"]),
        Baseline::Whole,
        vec![
            run(
                "stock",
                true,
                &[("test_a", Outcome::Passed), ("test_b", failed.clone())],
            ),
            run(
                "fork",
                false,
                &[("test_a", failed.clone()), ("test_b", failed)],
            ),
        ],
    );
    insta::assert_snapshot!(verdict.table(), @"
    test    stock    fork
    test_a  passed   FAILED
    test_b  FAILED   FAILED

      test_a (fork): AssertionError: 1 != 2
      test_b (stock): AssertionError: 1 != 2
      test_b (fork): AssertionError: 1 != 2
    ");
    insta::assert_snapshot!(verdict.complaints().join("\n"), @"
    test_b failed with the official wheel
    test_a failed with fork, and passes with the official wheel
    ");
}

#[test]
fn a_test_that_did_not_run_is_a_complaint() {
    let skipped = Outcome::Skipped("no CUDA".into());
    let runs = vec![run("stock", true, &[("test_a", skipped)])];
    let complaints =
        Verdict::new(expected(&["test_a", "test_b"]), Baseline::Whole, runs).complaints();
    insta::assert_snapshot!(complaints.join("\n"), @"
    not one test passes with the official wheel
    test_a was skipped with the official wheel
    test_b did not run with the official wheel
    ");
}

/// On a real GPU failures and skips of stock are accepted, but not crashes, since the rest does not run.
#[test]
fn a_machine_may_fail_what_the_fork_then_fails_too() {
    let failed = Outcome::Failed("no cuDNN".into());
    let skipped = Outcome::Skipped("two GPUs".into());
    let passed = Outcome::Passed;
    let ends = [
        ("test_a_True", passed.clone()),
        ("test_a_False", passed.clone()),
        ("test_a_b", failed.clone()),
        ("test_c", skipped),
    ];
    let names = ["test_a", "test_a_b", "test_c", "test_d"];
    let mut fork = ends.clone();
    fork[0].1 = failed;
    let runs = vec![run("stock", true, &ends), run("fork", false, &fork)];
    let verdict = Verdict::new(expected(&names), Baseline::AsItIs, runs);
    insta::assert_snapshot!(verdict.complaints().join("\n"), @"
    test_d did not run with the official wheel
    test_a_True failed with fork, and passes with the official wheel
    ");
}

#[test]
fn no_tests_is_a_complaint_and_so_is_an_engine_that_served_nothing() {
    assert!(
        !Verdict::new(Vec::new(), Baseline::AsItIs, Vec::new())
            .complaints()
            .is_empty()
    );
    let mut idle = run("fork", false, &[("test_a", Outcome::Passed)]);
    idle.served = Served::Wanted(0);
    let stock = run("stock", true, &[("test_a", Outcome::Passed)]);
    let complaints =
        Verdict::new(expected(&["test_a"]), Baseline::Whole, vec![stock, idle]).complaints();
    assert_eq!(complaints, ["fork: no request went through the engine"]);
}

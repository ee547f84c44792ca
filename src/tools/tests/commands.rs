use super::*;

#[test]
fn a_command_is_told_whole() {
    let bench = Bench::new();
    fs::create_dir(bench.path("sub")).unwrap();
    let output = bench.output("RunCommand", json!({"command": "pwd; cat; echo oops >&2; exit 4", "cwd": "sub", "stdin": "in\n"}));
    let directory = bench.path("sub");
    assert_eq!(output, format!("Exit code: 4\n--- stdout ---\n{}\nin\n--- stderr ---\noops", directory.display()));
    assert_eq!(bench.output("RunCommand", json!({"command": "true"})), "Exit code: 0\n--- stdout ---\n--- stderr ---");
    let output = bench.output("RunCommand", json!({"command": "kill -9 $$"}));
    assert!(output.starts_with("Exit code: 137 (killed by signal 9, SIGKILL)"), "{output}");
}

#[test]
fn a_command_is_proposed_with_its_time() {
    let bench = Bench::new();
    let plan = bench.plan("RunCommand", json!({"command": "cargo test", "timeout": 60})).unwrap();
    assert_eq!((plan.summary.as_str(), plan.timeout_seconds, plan.changes), ("$ cargo test", 60, true));
    assert!(
        matches!(&plan.actions[..], [Action::Exec { command, cwd }] if command == "cargo test" && cwd.real == bench.settings.workspace)
    );
    assert_eq!(plan.proposal.unwrap().summary, "Run: cargo test");
}

#[test]
fn a_command_that_takes_too_long_is_told_with_what_it_printed() {
    let bench = Bench::new();
    let result = bench.call("RunCommand", json!({"command": "echo begun; sleep 60", "timeout": 1}));
    assert_eq!(result.error.unwrap().code, ErrorCode::ToolExecutionTimeout);
    assert!(result.output_text.contains("begun"));
}

#[test]
fn both_outputs_share_one_limit() {
    let bench = Bench::new();
    let long = |count: usize, to: &str| format!("head -c {count} /dev/zero | tr '\\0' x {to};");
    for (stdout, stderr) in [(300_000, 0), (0, 300_000), (300_000, 300_000), (300_000, 10)] {
        let output = bench.output("RunCommand", json!({"command": long(stdout, "") + &long(stderr, ">&2")}));
        assert!(output.len() < 100 * 1024 + 300, "{} of {stdout} and {stderr}", output.len());
        assert!(output.len() > 90 * 1024, "{} of {stdout} and {stderr}", output.len());
        assert!(output.contains("[... truncated "));
    }
}

#[test]
fn provider_keys_are_in_no_environment() {
    let mut settings = Bench::new().settings;
    settings.environment = Environment::Inherit;
    settings.secret_names = vec!["PATH".into()];
    let bench = Bench { settings: Settings { workspace: "/".into(), ..settings }, ..Bench::new() };
    let output = bench.output("RunCommand", json!({"command": "/usr/bin/env; echo AYE=$AYE"}));
    assert!(!output.contains("\nPATH=") && output.contains("AYE=1"), "{output}");
}

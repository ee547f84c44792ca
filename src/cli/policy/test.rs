//! `aye policy test`: runs the `[[tests]]` in policies, for example in CI.

use super::origin::format_location as shown_place;
use super::paint::{OutputStyle, OutputTone};
use super::server_tools::{ServerTools, is_server_form, parse_qualified as named_of_server};
use crate::host::console::{print_json, print_text};
use crate::host::context::AppContext;
use crate::host::error::CliError;
use crate::host::exit::Exit;
use crate::host::options::Common;
use crate::host::policy_layers::{Policy, policy_bytes};
use crate::policy::{Bundle, Enforcer, Explanation, Layer, Sandbox, Scope, Test};
use crate::protocol::{ApproveWhen, CallArguments, Mode, Risk};
use crate::tools::{self, Toolset};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A set of tests, and the policy layers against which they run.
pub(crate) struct Suite {
    pub file: PathBuf,
    pub bundle: Bundle,
    pub policy: Policy,
}

/// Combined results of all tests.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TestTotals {
    pub tests: usize,
    pub failed: usize,
    /// Number of `match` and `not_match` examples. These were checked when the files were read.
    pub examples: usize,
    pub failures: Vec<TestFailure>,
}

/// A test that failed.
#[derive(Debug, Serialize)]
pub(crate) struct TestFailure {
    pub file: PathBuf,
    pub line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub tool: String,
    pub arguments: serde_json::Map<String, serde_json::Value>,
    pub expected: String,
    pub got: String,
    pub rule: String,
    pub reason: String,
}

pub(crate) fn run(app: &AppContext, common: &Common, files: &[PathBuf], json: bool) -> Result<Exit, CliError> {
    let suites = if files.is_empty() { load_layer_suites(app, common)? } else { load_suites(app, common, files)? };
    let mut outcome = TestTotals::default();
    for suite in &suites {
        judge(app, suite, &mut outcome)?;
    }
    if json {
        print_json(&outcome);
    } else {
        print_text(&text(&outcome, &suites, &OutputStyle::for_stdout(common.color)));
    }
    Ok(if outcome.failed == 0 { Exit::Completed } else { Exit::Failed })
}

/// Returns a suite for each layer in effect, consisting of that layer's own tests.
fn load_layer_suites(app: &AppContext, common: &Common) -> Result<Vec<Suite>, CliError> {
    let policy = super::load_policy(app, common)?;
    let suite = |layer: &Layer| Suite {
        file: layer.file.clone().unwrap_or_else(|| PathBuf::from("the built-in policy")),
        bundle: layer.bundle.clone(),
        policy: Policy::from_layers(policy.layers.clone(), policy.name.clone()),
    };
    Ok(policy.layers.iter().map(suite).collect())
}

/// Returns a separate suite for each file. A project's policy is tested on top of the layers in effect.
fn load_suites(app: &AppContext, common: &Common, files: &[PathBuf]) -> Result<Vec<Suite>, CliError> {
    let mut suites = Vec::new();
    for file in files {
        let bundle = read(file)?;
        let layers = if is_of_project(file) {
            let mut layers = super::load_policy(app, common)?.layers;
            layers.retain(|layer| layer.scope != Scope::Project);
            layers.push(Layer::from_file(Scope::Project, bundle.clone(), file));
            layers
        } else {
            vec![Layer::from_file(Scope::File, bundle.clone(), file)]
        };
        let name = file.display().to_string();
        suites.push(Suite { file: file.clone(), bundle, policy: Policy::from_layers(layers, name) });
    }
    Ok(suites)
}

pub(crate) fn read(file: &Path) -> Result<Bundle, CliError> {
    let bytes = policy_bytes(file)?.ok_or_else(|| CliError::usage(format!("policy file `{}` does not exist", file.display())))?;
    Bundle::parse_bytes(&bytes, &file.display().to_string())
        .map_err(|error| crate::host::policy_error::invalid_policy(&error, &bytes))
}

/// Returns whether a path refers to a project's policy.
pub(crate) fn is_of_project(file: &Path) -> bool {
    file.ends_with(".aye/policy.toml") || std::path::absolute(file).is_ok_and(|file| file.ends_with(".aye/policy.toml"))
}

pub(crate) fn judge(app: &AppContext, suite: &Suite, outcome: &mut TestTotals) -> Result<(), CliError> {
    outcome.examples += suite.bundle.examples();
    let servers = ServerTools::from_config(app, None);
    let mut enforcers: Vec<(Mode, Enforcer, Toolset)> = Vec::new();
    for test in &suite.bundle.tests {
        let place_of = |line: usize| shown_place(&suite.file, line);
        check_tool_exists(test, &suite.bundle).map_err(|why| CliError::usage(format!("{}: {why}", place_of(test.tool_line))))?;
        if !enforcers.iter().any(|(mode, ..)| *mode == test.mode) {
            let enforcer = app.enforcer(&suite.policy, Sandbox::Present, test.mode);
            let toolset = super::toolset(app, &enforcer);
            enforcers.push((test.mode, enforcer, toolset));
        }
        let Some((_, enforcer, toolset)) = enforcers.iter().find(|(mode, ..)| *mode == test.mode) else { continue };
        let arguments = CallArguments::Object(test.arguments.clone());
        let (_, told) = super::judge_call(&test.tool, &arguments, enforcer, toolset, &servers)
            .map_err(|why| CliError::usage(format!("{}: the call is invalid: {why}", place_of(test.line))))?;
        outcome.tests += 1;
        if let Some((expected, got)) = difference(test, &told) {
            outcome.failed += 1;
            outcome.failures.push(TestFailure {
                file: suite.file.clone(),
                line: test.line,
                name: test.name.clone(),
                tool: test.tool.clone(),
                arguments: test.arguments.clone(),
                expected,
                got,
                rule: told.rule,
                reason: told.reason,
            });
        }
    }
    Ok(())
}

/// Returns an error if a test uses an unknown tool, in which case it would not test anything.
pub(crate) fn check_tool_exists(test: &Test, bundle: &Bundle) -> Result<(), String> {
    // The servers and their tools are not known here, so any such name is accepted.
    if named_of_server(&test.tool).is_some() || is_server_form(&test.tool) {
        return Ok(());
    }
    tools::check_known(&test.tool, &bundle.named).map_err(|error| error.message)
}

/// Returns the expected and actual values that differ, or `None` if the test passes.
fn difference(test: &Test, told: &Explanation) -> Option<(String, String)> {
    let mut expected = Vec::new();
    let mut got = Vec::new();
    let mut differ = |wanted: String, came: String| {
        expected.push(wanted);
        got.push(came);
    };
    if test.verdict != told.verdict {
        differ(test.verdict.as_str().to_owned(), told.verdict.as_str().to_owned());
    }
    if let Some(rule) = test.rule.as_ref().filter(|rule| !rule_matches(rule, &told.rule)) {
        differ(format!("rule {rule}"), format!("rule {}", told.rule));
    }
    if let Some(risk) = test.risk.filter(|risk| *risk != told.risk) {
        differ(format!("{} risk", Risk::as_str(risk)), format!("{} risk", told.risk.as_str()));
    }
    if let Some(wanted) = test.approve.filter(|wanted| Some(*wanted) != told.approve) {
        let came = told.approve.map_or("none (no command needs approval)", ApproveWhen::as_str);
        differ(format!("approve {}", wanted.as_str()), format!("approve {came}"));
    }
    let hosts: Vec<String> = told.hosts.iter().map(ToString::to_string).collect();
    if let Some(wanted) = test.hosts.as_ref().filter(|wanted| **wanted != hosts) {
        differ(format!("hosts {wanted:?}"), format!("hosts {hosts:?}"));
    }
    if let Some(words) = test.reason_contains.as_ref().filter(|words| !told.reason.contains(*words)) {
        differ(format!("a reason with \"{words}\""), "a different reason".to_owned());
    }
    (!expected.is_empty()).then(|| (expected.join(", "), got.join(", ")))
}

/// Returns whether a rule is the expected one. The same file has the scope `user` when it is in effect, but `policy`
/// when it is given on the command line, so these scopes are treated as equal. `:31` stands for line 31 of any file.
fn rule_matches(wanted: &str, rule: &str) -> bool {
    let own = |scope: &str| matches!(scope, "" | "user" | "policy");
    match (wanted.split_once(':'), rule.split_once(':')) {
        (Some((one, line)), Some((other, at))) => line == at && (one == other || one.is_empty() || (own(one) && own(other))),
        _ => wanted == rule,
    }
}

fn text(outcome: &TestTotals, suites: &[Suite], paint: &OutputStyle) -> String {
    let mut out = String::new();
    for failure in &outcome.failures {
        let call = match failure.arguments.get("command").or_else(|| failure.arguments.get("path")) {
            Some(serde_json::Value::String(text)) => text.clone(),
            _ => serde_json::Value::Object(failure.arguments.clone()).to_string(),
        };
        let name = failure.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let line = format!(
            "{}: {name}{} `{call}`: expected {}, got {} ({}: {})",
            shown_place(&failure.file, failure.line),
            failure.tool,
            failure.expected,
            failure.got,
            failure.rule,
            failure.reason
        );
        out.push_str(&paint.tone(OutputTone::Bad, "failed "));
        out.push_str(&crate::text::reveal(&line.replace('\n', "⏎")));
        out.push('\n');
    }
    let count = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let (tests, examples) = (count(outcome.tests, "test"), count(outcome.examples, "rule example"));
    let summary = match (outcome.tests, outcome.failed) {
        (0, _) => {
            let files: Vec<String> = suites.iter().map(|suite| suite.file.display().to_string()).collect();
            format!("no [[tests]] in {}; {examples} passed", files.join(", "))
        }
        (_, 0) => format!("{tests} passed, {examples} passed"),
        (_, failed) => format!("{failed} of {tests} failed, {examples} passed"),
    };
    let tone = if outcome.failed == 0 { OutputTone::Good } else { OutputTone::Bad };
    out.push_str(&paint.tone(tone, &crate::text::reveal(&summary)));
    out.push('\n');
    out
}

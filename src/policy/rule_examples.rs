//! Checks the `match` and `not_match` examples of rules when a bundle is read.

use super::bundle::{Bundle, BundleError, RuleDecision};
use super::command::{CommandContext, applies};
use super::layer::PathRule;
use super::paths::{Context, PathPatterns, Sandbox, protected};
use crate::protocol::Mode;
use jiff::Timestamp;
use std::path::PathBuf;

/// Checks the examples of all rules in a bundle.
pub(crate) fn check_examples(bundle: &Bundle, name: &str) -> Result<(), BundleError> {
    check_command_rules(bundle, name)?;
    check_file_rules(bundle, name)
}

/// Checks the examples of command rules.
fn check_command_rules(bundle: &Bundle, name: &str) -> Result<(), BundleError> {
    let Some(shell) = &bundle.capabilities.shell else { return Ok(()) };
    let (root, context) = example_workspace();
    let scene =
        CommandContext { layers: &[], context: &context, cwd: &root, now: Timestamp::UNIX_EPOCH, grants: &[], mandate: &[] };
    for rule in &shell.rules {
        if let Some(example) = rule.matches.iter().find(|example| !applies(rule, &example.0, &scene)) {
            return Err(example_error(name, example, "does not match its `match`"));
        }
        if let Some(example) = rule.not_matches.iter().find(|example| applies(rule, &example.0, &scene)) {
            return Err(example_error(name, example, "matches its `not_match`"));
        }
    }
    Ok(())
}

/// Checks the examples of path rules.
fn check_file_rules(bundle: &Bundle, name: &str) -> Result<(), BundleError> {
    let (root, context) = example_workspace();
    let tables = [(true, &bundle.capabilities.read), (false, &bundle.capabilities.write), (false, &bundle.capabilities.delete)];
    for (is_reading, files) in tables.into_iter().filter_map(|(is_reading, files)| Some((is_reading, files.as_ref()?))) {
        let allowed = files.allowed.as_ref().map(|patterns| PathPatterns::new(patterns, &context, false));
        for rule in &files.rules {
            let places = PathRule::new(rule.clone(), &context).places;
            let applies = |text: &str| {
                let path = context.resolve(text, &root);
                let within =
                    || allowed.as_ref().map_or_else(|| context.in_workspace(&path), |all| all.matching_line(&path).is_some());
                let open = || is_reading || protected(&path, &context).is_none();
                places.matching_line(&path).is_some() && (rule.decision != RuleDecision::Allow || (within() && open()))
            };
            if let Some(example) = rule.matches.iter().find(|example| !applies(&example.0)) {
                return Err(example_error(name, example, "does not match its `match`"));
            }
            if let Some(example) = rule.not_matches.iter().find(|example| applies(&example.0)) {
                return Err(example_error(name, example, "matches its `not_match`"));
            }
        }
    }
    Ok(())
}

/// Returns the workspace root and the context in which examples are judged.
fn example_workspace() -> (PathBuf, Context) {
    let root = PathBuf::from("/workspace");
    let context = Context {
        roots: vec![root.clone()],
        home: PathBuf::from("/home/user"),
        mode: Mode::Ask,
        sandbox: Sandbox::Present,
        own: Vec::new(),
        skills: Vec::new(),
    };
    (root, context)
}

fn example_error(name: &str, (text, line): &(String, usize), what: &str) -> BundleError {
    BundleError { name: name.to_owned(), line: Some(*line), message: format!("the rule {what} example `{text}`") }
}

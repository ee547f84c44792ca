//! Restricts a project's bundle to tightening the policy. Keys that would loosen the policy are ignored and reported.

use super::reader::{BundleError, BundleTable};

/// Values that would loosen a policy, as (capability, key, value).
const LOOSE: &[(&str, &str, &str)] = &[
    ("Shell.Exec", "sandbox", "off"),
    ("Shell.Exec", "network", "allow"),
    ("Shell.Exec", "preview", "never"),
    ("Shell.Exec", "approve", "effects"),
    ("Shell.Exec", "unsandboxed", "ask"),
    ("Shell.Exec", "build_output", "direct"),
    ("Shell.Exec", "cache", "inherit"),
    ("Shell.Exec", "environment", "inherit"),
];

/// Lists that grant access, as (capability, key).
const OPENING: &[(&str, &str)] = &[
    ("File.Write", "unprotected_paths"),
    ("File.Delete", "unprotected_paths"),
    ("Shell.Exec", "writable_paths"),
    ("Shell.Exec", "readable_paths"),
    ("Network.Http", "allowed_private_hosts"),
];

/// Returns every entry in a bundle that would loosen a policy, with its line number and a description.
pub(crate) fn widens(root: &BundleTable<'_>) -> Result<Vec<(usize, String)>, BundleError> {
    let mut found = Vec::new();
    if let Some(line) = root.line_number("session_id") {
        found.push((line, "`session_id`: a project cannot choose the session".to_owned()));
    }
    if let Some(line) = root.line_number("extends") {
        found.push((line, "`extends`".to_owned()));
    }
    for command in root.sections("named_commands")? {
        found.push((command.line(), "a named command: a project cannot choose what runs".to_owned()));
    }
    let Some(capabilities) = root.section("capabilities")? else { return Ok(found) };
    for (name, capability) in capabilities.children()? {
        let name = name.text.as_str();
        let line = |key: &str| capability.line_number(key).unwrap_or_default();
        for (_, key, loose) in LOOSE.iter().filter(|(of, ..)| *of == name) {
            if capability.is_text(key) && capability.text(key)?.is_some_and(|text| text.text == *loose) {
                found.push((line(key), format!("`{key} = \"{loose}\"` in {name}")));
            }
        }
        for (_, key) in OPENING.iter().filter(|(of, _)| *of == name) {
            if capability.texts(key)?.is_some_and(|texts| !texts.is_empty()) {
                found.push((line(key), format!("`{key}` in {name}")));
            }
        }
        let asks = capability.switch("requires_approval")?;
        if asks == Some(false) {
            found.push((line("requires_approval"), format!("`requires_approval = false` in {name}")));
        }
        // If the file itself requires approval or lists the allowed commands, its allow rules are only exceptions to
        // that.
        let narrows = asks == Some(true) || capability.line_number("allowed_commands").is_some();
        for rule in capability.sections("rules")? {
            if rule.text("decision")?.is_some_and(|decision| decision.text == "allow") && !narrows {
                found.push((rule.line(), format!("an allow rule in {name}")));
            } else if rule.is_text("args") && rule.text("args")?.is_some_and(|args| args.text == "any") {
                found.push((rule.line_number("args").unwrap_or_default(), format!("`args = \"any\"` in a rule in {name}")));
            }
        }
    }
    found.sort();
    Ok(found)
}

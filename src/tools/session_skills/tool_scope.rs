//! Tools that a skill lists in `allowed-tools`. The list can only restrict: calls of other tools need approval, and
//! calls of listed ones are checked against the policy as usual.

use crate::policy::{LinePrefix, from_other_agent, is_covered_by_prefixes, names_tool};
use crate::protocol::Action;

/// Returns whether a list of tools includes a call. An unknown entry includes no calls.
pub(super) fn covers(entries: &[String], tool_name: &str, actions: &[Action], name_of: fn(&str) -> Option<&'static str>) -> bool {
    let mut prefixes = Vec::new();
    for entry in entries {
        let (name, pattern) = match entry.split_once('(') {
            Some((name, pattern)) => (name, Some(pattern.strip_suffix(')').unwrap_or(pattern))),
            None => (entry.as_str(), None),
        };
        if !is_meant(name.trim(), tool_name, name_of) {
            continue;
        }
        match pattern {
            None | Some("*") => return true,
            Some(pattern) => prefixes.push(LinePrefix::parse(pattern)),
        }
    }
    matches!(actions, [Action::Exec { command, .. }] if is_covered_by_prefixes(command, &prefixes))
}

fn is_meant(name: &str, tool_name: &str, name_of: fn(&str) -> Option<&'static str>) -> bool {
    if let Some(own) = name_of(name) {
        return own == tool_name;
    }
    names_tool(&from_other_agent(name).unwrap_or_else(|| name.to_owned()), tool_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Place, Target};
    use crate::tools::canonical_name;
    use std::path::PathBuf;

    fn command(line: &str) -> Vec<Action> {
        let cwd = Target { given: ".".to_owned(), real: PathBuf::from("/w"), place: Place::Directory };
        vec![Action::Exec { command: line.to_owned(), cwd }]
    }

    #[test]
    fn calls_are_covered_by_tool_names_aliases_and_command_words() {
        let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
        let entries = list(&["Read", "Bash(git log:*)", "Bash(make)", "mcp__docs", "mcp__web__fetch", "Write(src/**)"]);
        for (tool, line) in [
            ("ReadFile", ""),
            ("RunCommand", "git log -3"),
            ("RunCommand", "make && git log"),
            ("Mcp.docs/search", ""),
            ("Mcp.web/fetch", ""),
        ] {
            assert!(covers(&entries, tool, &command(line), canonical_name), "{tool} {line}");
        }
        for (tool, line) in [
            ("WriteFile", ""),
            ("Grep", ""),
            ("RunCommand", "git push"),
            ("RunCommand", "make; rm a"),
            ("Mcp.web/post", ""),
            ("Mcp.other/search", ""),
        ] {
            assert!(!covers(&entries, tool, &command(line), canonical_name), "{tool} {line}");
        }
        assert!(covers(&list(&["Bash"]), "RunCommand", &command("rm a"), canonical_name));
        assert!(covers(&list(&["Bash(*)"]), "RunCommand", &command("rm a"), canonical_name));
        assert!(!covers(&[], "ReadFile", &[], canonical_name));
    }
}

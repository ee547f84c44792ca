//! Parses `--allowed-tools`, which restricts a run to the listed tools. Tool names may be spelled as in aye or as in
//! other agents.

use crate::policy::{ToolLimit, ToolNames, entry_server, from_other_agent, names_tool};
use crate::protocol::Problem;
use crate::tools;
use strsim::damerau_levenshtein;

const OPTION: &str = "--allowed-tools";
/// Maximum number of similar names suggested in an error.
const MAX_NAMED: usize = 3;

/// Names that an entry can refer to, in addition to built-in tools.
pub(crate) struct KnownNames {
    /// Custom tools, and commands that the policy offers as tools.
    pub own: Vec<String>,
    /// MCP servers, whose tools are not yet known.
    pub servers: Vec<String>,
}

/// Returns the tool limit that consists of these entries.
pub(crate) fn limit(entries: &[String], known: &KnownNames) -> Result<ToolLimit, Problem> {
    let names: Result<Vec<String>, Problem> = entries.iter().map(|entry| known.resolve(entry)).collect();
    Ok(ToolLimit { rule: OPTION.to_owned(), names: ToolNames::Allowed(names?) })
}

impl KnownNames {
    fn resolve(&self, entry: &str) -> Result<String, Problem> {
        if let Some((name, pattern)) = entry.split_once('(') {
            return Err(pattern_problem(entry, name, pattern.strip_suffix(')').unwrap_or(pattern)));
        }
        let entry = from_other_agent(entry).unwrap_or_else(|| entry.to_owned());
        if let Some(name) = tools::canonical_name(&entry) {
            return Ok(name.to_owned());
        }
        if tools::is_agent_call(&entry) {
            return Ok(tools::AGENT.to_owned());
        }
        let is_built_in =
            tools::built_in_names().chain([tools::FIND_TOOLS, tools::SKILL, tools::AGENT]).any(|name| names_tool(&entry, name));
        if is_built_in || self.own.iter().any(|name| names_tool(&entry, name)) {
            return Ok(entry);
        }
        match entry_server(&entry) {
            Some(server) if self.servers.iter().any(|name| names_tool(server, name)) => Ok(entry),
            Some(server) => Err(self.unknown_server(&entry, server)),
            None => Err(self.unknown_name(&entry)),
        }
    }

    fn unknown_server(&self, entry: &str, server: &str) -> Problem {
        let problem = Problem::new(format!("`{entry}` in `{OPTION}`")).because(format!("unknown MCP server `{server}`"));
        let near = similar(server, self.servers.iter().map(String::as_str));
        problem.hint(match &near[..] {
            [] => "run `aye mcp list` to list the servers".to_owned(),
            near => format!("did you mean the server {}?", near.join(" or ")),
        })
    }

    fn unknown_name(&self, entry: &str) -> Problem {
        let problem = Problem::new(format!("unknown tool `{entry}` in `{OPTION}`"));
        let own = self.own.iter().map(String::as_str);
        let near = similar(entry, tools::all_names().into_iter().chain(own));
        let problem = if near.is_empty() { problem } else { problem.hint(format!("did you mean {}?", near.join(" or "))) };
        problem.hint("run `aye tool list` to list the tools")
    }
}

/// Returns whether a word on the command line is the name of a tool, or a pattern for one, such as `Bash(git log:*)`.
pub(crate) fn is_tool_name(word: &str) -> bool {
    let name = word.strip_suffix(')').and_then(|pattern| pattern.split_once('(')).map_or(word, |(name, _)| name);
    tools::canonical_name(name).is_some() || tools::is_agent_call(name) || from_other_agent(word).is_some()
}

/// Returns the names that resemble an entry, in backticks and most similar first.
fn similar<'a>(entry: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let lower = entry.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .map(|name| (damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .collect();
    near.sort_unstable();
    near.dedup_by_key(|(_, name)| name.to_lowercase());
    near.truncate(MAX_NAMED);
    near.into_iter().map(|(_, name)| format!("`{name}`")).collect()
}

/// Returns the error for an entry with a pattern, such as `Bash(npm test:*)`, including the equivalent policy rule.
fn pattern_problem(entry: &str, name: &str, pattern: &str) -> Problem {
    let problem = Problem::new(format!("`{entry}` in `{OPTION}`")).because("expected a tool name, without a pattern");
    let Some(tool) = tools::canonical_name(name.trim()) else { return problem.hint("run `aye tool list` to list the tools") };
    let words: Vec<&str> = pattern.trim_end_matches(":*").split_whitespace().filter(|word| !word.contains('*')).collect();
    if tool != "RunCommand" || words.is_empty() {
        return problem.hint(format!("write `{tool}`; the policy decides what it may access"));
    }
    let words: Vec<String> = words.iter().map(|word| toml::Value::String((*word).to_owned()).to_string()).collect();
    let rule = [
        "    [[capabilities.\"Shell.Exec\".rules]]".to_owned(),
        format!("    command = [{}]", words.join(", ")),
        "    decision = \"allow\"".to_owned(),
    ];
    let problem = Problem { excerpt: rule.to_vec(), ..problem };
    problem.hint(format!("write `{tool}`, and add this rule to your policy or to a file for `--policy`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> KnownNames {
        KnownNames { own: vec!["Tickets".to_owned()], servers: vec!["docs".to_owned()] }
    }

    #[test]
    fn entries_are_names_aliases_patterns_or_server_tools() {
        for (entry, name) in [
            ("ReadFile", "ReadFile"),
            ("readfile", "ReadFile"),
            ("Bash", "RunCommand"),
            ("Read", "ReadFile"),
            ("Edit", "EditFile"),
            ("WebFetch", "HttpRequest"),
            ("tickets", "tickets"),
            ("Cli*", "Cli*"),
            ("*", "*"),
            ("FindTools", "FindTools"),
            ("Task", "Agent"),
            ("agent", "Agent"),
            ("docs__search", "docs__search"),
            ("docs/search", "docs/search"),
            ("Mcp.docs/*", "Mcp.docs/*"),
            ("mcp__docs__search", "docs__search"),
            ("mcp__docs", "Mcp.docs/*"),
        ] {
            assert_eq!(known().resolve(entry).as_deref(), Ok(name), "{entry}");
        }
    }

    #[test]
    fn unknown_entries_are_errors_with_a_suggestion() {
        for (entry, parts) in [
            ("ReedFile", &["unknown tool `ReedFile`", "`ReadFile`", "aye tool list"][..]),
            ("Tickts", &["did you mean `Tickets`?"]),
            ("Frob*", &["unknown tool `Frob*`"]),
            ("dosc__search", &["unknown MCP server `dosc`", "the server `docs`"]),
            ("mcp__other__x", &["unknown MCP server `other`", "aye mcp list"]),
            ("Bash(npm test:*)", &["without a pattern", "command = [\"npm\", \"test\"]", "write `RunCommand`"]),
            ("Bash(git log *)", &["command = [\"git\", \"log\"]"]),
            ("Bash(*)", &["write `RunCommand`; the policy decides"]),
            ("Read(src/**)", &["write `ReadFile`; the policy decides"]),
            ("Frob(x)", &["aye tool list"]),
        ] {
            let text = known().resolve(entry).unwrap_err().text();
            for part in parts {
                assert!(text.contains(part), "{entry}: {text}");
            }
        }
    }

    #[test]
    fn names_aliases_and_patterns_of_tools_are_recognized() {
        for word in ["ReadFile", "Read", "Bash(git log:*)", "Task", "mcp__docs__search"] {
            assert!(is_tool_name(word), "{word}");
        }
        for word in ["explain", "Explain (briefly)", "docs", ""] {
            assert!(!is_tool_name(word), "{word}");
        }
    }

    #[test]
    fn a_limit_allows_only_the_listed_tools() {
        let limit = limit(&["Read".to_owned(), "mcp__docs".to_owned()], &known()).unwrap();
        assert!(limit.denies("ReadFile").is_none() && limit.denies("Mcp.docs/search").is_none());
        let denial = limit.denies("RunCommand").unwrap();
        assert_eq!((denial.rule.as_str(), denial.reason.as_str()), (OPTION, "the tool `RunCommand` is not allowed in this run"));
        let none = super::limit(&[], &known()).unwrap();
        assert!(none.denies("ReadFile").is_some());
    }
}

//! Resolves tool names when local tools and MCP tools share a name. Uses only the names, and sends no requests.

use std::collections::{HashMap, HashSet};

/// Maximum number of characters that model APIs allow in a tool name.
const MAX_LETTERS: usize = 64;
const HASH_LETTERS: usize = 8;
const BETWEEN: &str = "__";

/// Meaning of an unqualified name that a local tool and an MCP tool share (`tools.conflict`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Conflict {
    #[default]
    LocalFirst,
    McpFirst,
    /// The name refers to neither tool and must be qualified.
    Error,
}

/// The tool to which a name refers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ToolReference {
    Local(String),
    Remote { server: String, tool: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error("unknown tool `{0}`")]
    Unknown(String),
    #[error("`{name}` is ambiguous; use one of: {}", .names.join(", "))]
    Ambiguous { name: String, names: Vec<String> },
}

/// The names of all tools at one point in time.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTable {
    local: Vec<String>,
    remote: Vec<RemoteName>,
    conflict: Conflict,
}

#[derive(Debug, Clone)]
struct RemoteName {
    server: String,
    tool: String,
    /// Name under which the tool is offered to the model.
    mapped: String,
}

impl RemoteName {
    fn meaning(&self) -> ToolReference {
        ToolReference::Remote { server: self.server.clone(), tool: self.tool.clone() }
    }

    /// Returns whether the name is qualified with the server's name: `server:Tool`, `server/tool` or `Mcp.server/tool`.
    fn is_qualified_in(&self, called: &str, same: fn(&str, &str) -> bool) -> bool {
        let called = called.strip_prefix("Mcp.").unwrap_or(called);
        let rest = called.get(..self.server.len()).filter(|start| same(start, &self.server)).and(called.get(self.server.len()..));
        rest.and_then(|rest| rest.strip_prefix([':', '/'])).is_some_and(|tool| same(tool, &self.tool))
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one == other
}

fn is_same_ignoring_case(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

impl NameTable {
    /// Builds the table from the names of the local tools and of the MCP tools, which are given as `(server, tool)`.
    /// Removes duplicates.
    pub(crate) fn new<'a>(
        local: impl IntoIterator<Item = &'a str>,
        remote: impl IntoIterator<Item = (&'a str, &'a str)>,
        conflict: Conflict,
    ) -> Self {
        let mut names = Self { local: Vec::new(), remote: Vec::new(), conflict };
        for name in local {
            if !names.local.iter().any(|known| is_same_ignoring_case(known, name)) {
                names.local.push(name.to_owned());
            }
        }
        let (mut pairs, mut seen) = (Vec::new(), HashSet::new());
        for pair in remote {
            if seen.insert(pair) {
                pairs.push(pair);
            }
        }
        // Sorted, so that the names do not depend on which server responds first.
        let mut ordered: Vec<(&str, &str)> = pairs.clone();
        ordered.sort_unstable();
        let mut taken: HashSet<String> = names.local.iter().map(|name| name.to_ascii_lowercase()).collect();
        let mut mapped: HashMap<(&str, &str), String> = HashMap::new();
        for plain_first in [true, false] {
            for &(server, tool) in &ordered {
                if mapped.contains_key(&(server, tool)) {
                    continue;
                }
                let name = match join_names(server, tool) {
                    Some(name) if plain_first && !taken.contains(&name.to_ascii_lowercase()) => name,
                    _ if plain_first => continue,
                    _ => hashed(server, tool, &taken),
                };
                taken.insert(name.to_ascii_lowercase());
                mapped.insert((server, tool), name);
            }
        }
        for pair in pairs {
            let (server, tool) = pair;
            let name = mapped.remove(&pair);
            names.remote.extend(name.map(|mapped| RemoteName { server: server.to_owned(), tool: tool.to_owned(), mapped }));
        }
        names
    }

    /// Returns the MCP tools, as `(server, tool)`, each with the name under which it is offered to the model.
    pub(crate) fn remote_names(&self) -> impl Iterator<Item = ((String, String), String)> {
        self.remote.iter().map(|remote| ((remote.server.clone(), remote.tool.clone()), remote.mapped.clone()))
    }

    /// Returns whether an MCP tool also has this unqualified name.
    pub(crate) fn is_contested(&self, name: &str) -> bool {
        self.remote.iter().any(|remote| is_same_ignoring_case(&remote.tool, name))
    }

    /// Returns all names offered to the model, each with the tool to which it refers.
    #[cfg(test)]
    fn offered_names(&self) -> Vec<(String, ToolReference)> {
        let clear = |name: &&String| self.conflict == Conflict::LocalFirst || !self.is_contested(name);
        let local = self.local.iter().filter(clear).map(|name| (name.clone(), ToolReference::Local(name.clone())));
        local.chain(self.remote.iter().map(|remote| (remote.mapped.clone(), remote.meaning()))).collect()
    }

    /// Resolves a name, whether it is one offered to the model, a qualified one or an unqualified one.
    pub(crate) fn meaning(&self, called: &str) -> Result<ToolReference, NameError> {
        self.explicit(called).unwrap_or_else(|| self.resolve_unqualified(called))
    }

    /// Resolves a name offered to the model or a qualified name. Returns `None` for any other name.
    pub(crate) fn explicit(&self, called: &str) -> Option<Result<ToolReference, NameError>> {
        if let Some(remote) = self.remote.iter().find(|remote| remote.mapped == called) {
            return Some(Ok(remote.meaning()));
        }
        for same in [is_same, is_same_ignoring_case] {
            let said: Vec<&RemoteName> = self.remote.iter().filter(|remote| remote.is_qualified_in(called, same)).collect();
            match said.as_slice() {
                [] => {}
                [one] => return Some(Ok(one.meaning())),
                several => return Some(Err(ambiguous(called, several, None))),
            }
        }
        None
    }

    /// Resolves an unqualified name.
    pub(crate) fn resolve_unqualified(&self, called: &str) -> Result<ToolReference, NameError> {
        let local = self
            .local
            .iter()
            .find(|name| *name == called)
            .or_else(|| self.local.iter().find(|name| is_same_ignoring_case(name, called)));
        let mut remote: Vec<&RemoteName> = self.remote.iter().filter(|remote| remote.tool == called).collect();
        if remote.is_empty() {
            remote = self.remote.iter().filter(|remote| is_same_ignoring_case(&remote.tool, called)).collect();
        }
        match (local, remote.as_slice(), self.conflict) {
            (Some(name), [], _) | (Some(name), _, Conflict::LocalFirst) => Ok(ToolReference::Local(name.clone())),
            (None, [], _) => Err(NameError::Unknown(called.to_owned())),
            (None, [one], _) | (Some(_), [one], Conflict::McpFirst) => Ok(one.meaning()),
            (None, several, _) | (Some(_), several, Conflict::McpFirst) => Err(ambiguous(called, several, None)),
            (Some(name), several, Conflict::Error) => Err(ambiguous(called, several, Some(name))),
        }
    }

    /// Returns notices on unqualified names that are shared by several tools.
    pub(crate) fn conflicts(&self) -> Vec<String> {
        let of = |name: &String| {
            let servers: Vec<&str> = self
                .remote
                .iter()
                .filter(|remote| is_same_ignoring_case(&remote.tool, name))
                .map(|remote| remote.server.as_str())
                .collect();
            (!servers.is_empty()).then(|| format!("`{name}` is both a local tool and a tool of {}", servers.join(", ")))
        };
        self.local.iter().filter_map(of).collect()
    }
}

fn ambiguous(name: &str, several: &[&RemoteName], local: Option<&String>) -> NameError {
    let mut names: Vec<String> = several.iter().map(|remote| format!("`{}:{}`", remote.server, remote.tool)).collect();
    names.extend(local.map(|name| format!("or set `tools.conflict` to choose the local `{name}`")));
    NameError::Ambiguous { name: name.to_owned(), names }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_-".contains(letter)
}

/// Joins the names of a server and a tool. Returns `None` if the result would be ambiguous, too long or invalid as a
/// tool name.
fn join_names(server: &str, tool: &str) -> Option<String> {
    let name = format!("{server}{BETWEEN}{tool}");
    let clear = !server.is_empty()
        && !tool.is_empty()
        && !server.contains(BETWEEN)
        && !server.ends_with('_')
        && !tool.starts_with('_')
        && name.chars().all(is_letter);
    (clear && name.len() <= MAX_LETTERS).then_some(name)
}

/// Builds a name from a readable prefix, made of both names, followed by a hash of them.
fn hashed(server: &str, tool: &str, taken: &HashSet<String>) -> String {
    let readable: String =
        format!("{server}{BETWEEN}{tool}").chars().map(|letter| if is_letter(letter) { letter } else { '_' }).collect();
    let most = MAX_LETTERS - HASH_LETTERS - 1;
    let readable: String = readable.chars().take(most).collect();
    let mut salt = 0_u32;
    loop {
        let mut hasher = blake3::Hasher::new();
        hasher.update(server.as_bytes()).update(b"\0").update(tool.as_bytes()).update(&salt.to_le_bytes());
        let hash: String = hasher.finalize().to_hex().chars().take(HASH_LETTERS).collect();
        let name = format!("{readable}_{hash}");
        if !taken.contains(&name.to_ascii_lowercase()) {
            return name;
        }
        salt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn remote(server: &str, tool: &str) -> ToolReference {
        ToolReference::Remote { server: server.to_owned(), tool: tool.to_owned() }
    }

    fn local(name: &str) -> ToolReference {
        ToolReference::Local(name.to_owned())
    }

    fn names(conflict: Conflict) -> NameTable {
        NameTable::new(
            ["ReadFile", "lint"],
            [("docs", "search"), ("docs", "lint"), ("web", "search"), ("files", "readfile")],
            conflict,
        )
    }

    #[test]
    fn bare_names_are_resolved_by_the_conflict_setting() {
        let all = [Conflict::LocalFirst, Conflict::McpFirst, Conflict::Error];
        let lint = all.map(|conflict| names(conflict).meaning("lint").ok());
        assert_eq!(lint, [Some(local("lint")), Some(remote("docs", "lint")), None]);
        let read = all.map(|conflict| names(conflict).meaning("ReadFile").ok());
        assert_eq!(read, [Some(local("ReadFile")), Some(remote("files", "readfile")), None]);
        let said = names(Conflict::Error).meaning("lint").map_err(|error| error.to_string());
        assert!(said.is_err_and(|said| said.contains("`docs:lint`") && said.contains("tools.conflict")));
        assert_eq!(names(Conflict::Error).conflicts().len(), 2);
    }

    #[test]
    fn qualified_names_resolve_to_their_server_under_every_setting() {
        for conflict in [Conflict::LocalFirst, Conflict::McpFirst, Conflict::Error] {
            let names = names(conflict);
            for called in ["docs:lint", "docs/lint", "Mcp.docs/lint", "DOCS:Lint", "docs__lint"] {
                assert_eq!(names.meaning(called), Ok(remote("docs", "lint")), "{called}");
            }
            for called in ["docs:", ":lint", "doc:slint", "docs::lint", "lint:docs", "nobody:lint", "docs.lint", ""] {
                assert_eq!(names.meaning(called), Err(NameError::Unknown(called.to_owned())), "{called}");
            }
            assert!(matches!(names.meaning("search"), Err(NameError::Ambiguous { names, .. }) if names.len() == 2));
        }
    }

    #[test]
    fn every_offered_name_resolves_to_its_tool() {
        let long = "x".repeat(80);
        let pairs = [
            ("docs", "search"),
            ("docs", "a.b"),
            ("docs", "a b"),
            ("docs", "a_b"),
            ("a__b", "c"),
            ("a", "b__c"),
            ("a_", "_c"),
            ("größe", "länge"),
            ("docs", &long),
            ("docs", &long[..79]),
            ("srv", "_x"),
            ("a/b", "c"),
            ("a", "b/c"),
        ];
        for conflict in [Conflict::LocalFirst, Conflict::McpFirst, Conflict::Error] {
            let names = NameTable::new(["ReadFile", "docs__search", "search"], pairs, conflict);
            let offered = names.offered_names();
            for (name, meaning) in &offered {
                assert_eq!(names.meaning(name).as_ref(), Ok(meaning), "{name}");
                assert!(name.len() <= 64 && name.chars().all(is_letter) && !name.is_empty(), "{name}");
            }
            let remotes = offered.iter().filter(|(_, meaning)| matches!(meaning, ToolReference::Remote { .. })).count();
            assert_eq!(remotes, pairs.len());
        }
        // A local tool already has that name.
        let names = NameTable::new(["docs__search"], [("docs", "search")], Conflict::LocalFirst);
        assert_eq!(names.meaning("docs__search"), Ok(local("docs__search")));
        assert!(names.offered_names()[1].0.starts_with("docs__search_"));
    }

    proptest! {
        #[test]
        fn offered_names_are_unique_and_independent_of_order(
            locals in prop::collection::vec("[a-c_]{1,6}", 0..4),
            pairs in prop::collection::vec(("[a-c_./:]{1,5}", "[a-cA_./:]{1,70}"), 0..8),
        ) {
            let remotes = || pairs.iter().map(|(server, tool)| (server.as_str(), tool.as_str()));
            let names = NameTable::new(locals.iter().map(String::as_str), remotes(), Conflict::LocalFirst);
            let mut seen = HashSet::new();
            let offered = names.offered_names();
            for (name, meaning) in &offered {
                prop_assert!(name.len() <= 64 && name.chars().all(is_letter));
                prop_assert!(seen.insert(name.to_ascii_lowercase()) || name.contains("__"), "{name} twice");
                if let ToolReference::Remote { .. } = meaning {
                    prop_assert_eq!(names.meaning(name), Ok(meaning.clone()));
                }
            }
            let mut turned: Vec<_> = remotes().collect();
            turned.reverse();
            let turned = NameTable::new(locals.iter().map(String::as_str), turned, Conflict::LocalFirst);
            for (name, meaning) in offered {
                prop_assert_eq!(turned.meaning(&name), names.meaning(&name), "{:?}", meaning);
            }
        }
    }
}

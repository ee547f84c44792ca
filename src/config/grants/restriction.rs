//! Editing of a policy file to add ask and deny rules while preserving the rest of the text.

use super::edit::{LineEndings, RULES, SHELL, capability, parse};
use crate::protocol::VerdictKind;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

/// Keys that do not affect what a rule does.
const REMARKS: [&str; 3] = ["reason", "match", "not_match"];

/// Rule that requires approval for, or denies, whatever it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restriction {
    pub subject: RestrictionSubject,
    pub verdict: VerdictKind,
    pub reason: String,
    /// Examples of commands or paths that the rule must match.
    pub matches: Vec<String>,
    pub not_matches: Vec<String>,
}

/// Scope of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestrictionSubject {
    /// Program followed by further words. Each word is given as a list of alternatives.
    Command { words: Vec<Vec<String>>, exact: bool },
    /// Paths, for a file capability.
    Paths { capability: &'static str, paths: Vec<String> },
    /// MCP server tools in the form `SERVER/TOOL`.
    ServerTools(Vec<String>),
}

impl RestrictionSubject {
    /// Returns the policy capability to which the rule applies.
    pub(crate) fn capability(&self) -> &'static str {
        match self {
            Self::Command { .. } => SHELL,
            Self::Paths { capability, .. } => capability,
            Self::ServerTools(_) => "Mcp.Invoke",
        }
    }
}

/// Adds rules, skipping those that are already in the text.
pub(crate) fn add_restrictions(text: &str, rules: &[Restriction]) -> Result<String, String> {
    edit_document(text, |document| rules.iter().try_for_each(|rule| insert_restriction(document, rule)))
}

/// Disables the tools with these names, whatever the rest of the policy says about them.
pub(crate) fn with_disabled_tools(text: &str, names: &[String]) -> Result<String, String> {
    edit_document(text, |document| {
        let tools = document.entry("tools").or_insert_with(|| Item::Table(Table::new()));
        let tools = tools.as_table_like_mut().ok_or("`tools` must be a table")?;
        add_texts(tools, "disabled", names)
    })
}

/// Blocks requests to these hosts.
pub(crate) fn with_blocked_domains(text: &str, domains: &[String]) -> Result<String, String> {
    edit_document(text, |document| add_texts(capability(document, "Network.Http")?.0, "blocked_domains", domains))
}

fn edit_document(text: &str, edit: impl FnOnce(&mut DocumentMut) -> Result<(), String>) -> Result<String, String> {
    let (ends, before) = LineEndings::normalize(text);
    let mut document = parse(&before)?;
    edit(&mut document)?;
    Ok(ends.restore(&before, &document.to_string()))
}

/// Adds strings to an array, skipping those that it already contains.
fn add_texts(table: &mut dyn TableLike, key: &str, texts: &[String]) -> Result<(), String> {
    let array = table.entry(key).or_insert_with(|| toml_edit::value(Array::new()));
    let array = array.as_array_mut().ok_or_else(|| format!("`{key}` must be an array"))?;
    for text in texts {
        if !array.iter().any(|known| known.as_str() == Some(text)) {
            array.push(text.as_str());
        }
    }
    Ok(())
}

fn insert_restriction(document: &mut DocumentMut, rule: &Restriction) -> Result<(), String> {
    let (capability, inline) = capability(document, rule.subject.capability())?;
    if let Some(rules) = capability.get_mut(RULES).filter(|_| matches!(rule.subject, RestrictionSubject::Paths { .. }))
        && add_to_existing(rules, rule)
    {
        return Ok(());
    }
    let empty = || if inline { toml_edit::value(Array::new()) } else { Item::ArrayOfTables(ArrayOfTables::new()) };
    match capability.entry(RULES).or_insert_with(empty) {
        Item::ArrayOfTables(tables) => {
            let mut table = Table::new();
            fill(&mut table, rule);
            if !tables.iter().any(|known| is_same(known, &table)) {
                table.decor_mut().set_prefix("\n");
                tables.push(table);
            }
        }
        Item::Value(Value::Array(array)) => {
            let mut table = InlineTable::new();
            fill(&mut table, rule);
            if !array.iter().filter_map(Value::as_inline_table).any(|known| is_same(known, &table)) {
                array.push(table);
            }
        }
        Item::None | Item::Value(_) | Item::Table(_) => return Err(format!("`{RULES}` must be an array of rules")),
    }
    Ok(())
}

fn fill(table: &mut dyn TableLike, rule: &Restriction) {
    let list = |texts: &[String]| toml_edit::value(texts.iter().collect::<Array>());
    match &rule.subject {
        RestrictionSubject::Command { words, exact } => {
            let word = |alternatives: &Vec<String>| match alternatives.as_slice() {
                [word] => Value::from(word.as_str()),
                several => Value::Array(several.iter().collect()),
            };
            table.insert("command", toml_edit::value(words.iter().map(word).collect::<Array>()));
            if *exact {
                table.insert("exact", toml_edit::value(true));
            }
        }
        RestrictionSubject::Paths { paths, .. } => drop(table.insert("paths", list(paths))),
        RestrictionSubject::ServerTools(tools) => drop(table.insert("tools", list(tools))),
    }
    table.insert("decision", toml_edit::value(rule.verdict.as_str()));
    table.insert("reason", toml_edit::value(&rule.reason));
    for (key, examples) in [("match", &rule.matches), ("not_match", &rule.not_matches)] {
        if !examples.is_empty() {
            table.insert(key, list(examples));
        }
    }
}

/// Adds a rule's paths to the last existing rule, if the two differ only in their paths. Returns whether the existing
/// rules now apply to all of these paths.
fn add_to_existing(rules: &mut Item, rule: &Restriction) -> bool {
    let mut tables: Vec<&mut dyn TableLike> = match rules {
        Item::ArrayOfTables(tables) => tables.iter_mut().map(|table| table as &mut dyn TableLike).collect(),
        Item::Value(Value::Array(array)) => {
            array.iter_mut().filter_map(Value::as_inline_table_mut).map(|table| table as &mut dyn TableLike).collect()
        }
        Item::None | Item::Value(_) | Item::Table(_) => return false,
    };
    let RestrictionSubject::Paths { paths, .. } = &rule.subject else { return false };
    let decides = |table: &dyn TableLike| {
        let is_text = |key, text: &str| table.get(key).and_then(Item::as_str) == Some(text);
        let is_simple = table.iter().all(|(key, _)| ["paths", "decision", "reason"].contains(&key));
        (is_simple && is_text("decision", rule.verdict.as_str()), is_text("reason", &rule.reason))
    };
    let has = |table: &dyn TableLike, path: &str| {
        let known = table.get("paths").and_then(Item::as_array);
        known.is_some_and(|known| known.iter().any(|known| known.as_str() == Some(path)))
    };
    if tables.iter().any(|table| decides(&**table).0 && paths.iter().all(|path| has(&**table, path))) {
        return true;
    }
    let Some(last) = tables.last_mut().filter(|table| decides(&***table) == (true, true)) else { return false };
    let Some(array) = last.get_mut("paths").and_then(Item::as_array_mut) else { return false };
    add_lines(array, paths);
    true
}

/// Adds paths to an array, with each path on a line of its own. Comments between paths are preserved.
fn add_lines(array: &mut Array, paths: &[String]) {
    let comment =
        |text: Option<&RawString>| text.and_then(RawString::as_str).filter(|text| text.contains('#')).map(str::to_owned);
    // A comment after the last comma belongs to the path before it.
    let (count, last) = (array.len(), comment(Some(array.trailing())).filter(|_| array.trailing_comma()));
    for path in paths {
        if !array.iter().any(|known| known.as_str() == Some(path)) {
            array.push(path.as_str());
        }
    }
    for (index, path) in array.iter_mut().enumerate() {
        match &last {
            Some(text) if index == count => path.decor_mut().set_prefix(format!("{}\n    ", text.trim_end())),
            _ if comment(path.decor().prefix()).is_none() => path.decor_mut().set_prefix("\n    "),
            _ => {}
        }
    }
    if last.is_some() || comment(Some(array.trailing())).is_none() {
        array.set_trailing("\n");
    }
    array.set_trailing_comma(true);
}

/// Returns whether two rules do the same, regardless of their reasons and examples.
fn is_same(one: &dyn TableLike, other: &dyn TableLike) -> bool {
    meaning(one) == meaning(other)
}

fn meaning(table: &dyn TableLike) -> Vec<(String, String)> {
    let entries = table.iter().filter(|(key, _)| !REMARKS.contains(key));
    let mut entries: Vec<_> = entries.map(|(key, item)| (key.to_owned(), plain(item.as_value()))).collect();
    entries.sort();
    entries
}

/// Returns the text of a value without the spacing around it.
fn plain(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Array(array)) => {
            let entries: Vec<String> = array.iter().map(|entry| plain(Some(entry))).collect();
            format!("[{}]", entries.join(","))
        }
        Some(Value::String(text)) => format!("{:?}", text.value()),
        Some(other) => other.to_string().trim().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny(subject: RestrictionSubject) -> Restriction {
        let reason = "imported".to_owned();
        Restriction { subject, verdict: VerdictKind::Deny, reason, matches: Vec::new(), not_matches: Vec::new() }
    }

    fn command(words: &[&[&str]]) -> RestrictionSubject {
        let words = words.iter().map(|word| word.iter().map(|one| (*one).to_owned()).collect()).collect();
        RestrictionSubject::Command { words, exact: false }
    }

    #[test]
    fn rules_are_added_once_and_nothing_else_changes() {
        let rules = [
            Restriction {
                matches: vec!["git push".to_owned()],
                not_matches: vec!["git pull".to_owned()],
                ..deny(command(&[&["git"], &["push", "fetch"]]))
            },
            deny(RestrictionSubject::Paths { capability: "File.Read", paths: vec!["**/.env".to_owned()] }),
            deny(RestrictionSubject::ServerTools(vec!["docs/*".to_owned()])),
        ];
        for before in [
            "schema_version = 1\n# mine\n",
            "schema_version = 1\r\n[capabilities.\"Shell.Exec\"]\r\nrequires_approval = true # yes\r\n",
            "schema_version = 1\n[capabilities]\n\"Shell.Exec\" = { requires_approval = true }\n",
        ] {
            let after = add_restrictions(before, &rules).unwrap();
            assert!(after.contains("# mine") == before.contains("# mine"), "{after}");
            assert_eq!(add_restrictions(&after, &rules).as_ref(), Ok(&after), "a rule is added once");
            crate::policy::Bundle::parse(&after, "policy.toml").unwrap_or_else(|error| panic!("{error}\n{after}"));
        }
        let after = add_restrictions("schema_version = 1\n", &rules[..1]).unwrap();
        assert_eq!(
            after,
            "schema_version = 1\n\n[[capabilities.\"Shell.Exec\".rules]]\ncommand = [\"git\", [\"push\", \"fetch\"]]\n\
             decision = \"deny\"\nreason = \"imported\"\nmatch = [\"git push\"]\nnot_match = [\"git pull\"]\n"
        );
    }

    #[test]
    fn paths_with_the_same_decision_and_reason_share_a_rule() {
        let paths = |paths: &[&str]| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            deny(RestrictionSubject::Paths { capability: "File.Read", paths })
        };
        let ask = Restriction { verdict: VerdictKind::Ask, ..paths(&["c"]) };
        let rules = [paths(&["a"]), paths(&["b"]), ask, paths(&["d"]), paths(&["a"])];
        let after = add_restrictions("schema_version = 1\n", &rules).unwrap();
        let rule = |paths: &str, decision: &str| {
            let head = "\n[[capabilities.\"File.Read\".rules]]\n";
            format!("{head}paths = {paths}\ndecision = \"{decision}\"\nreason = \"imported\"\n")
        };
        let expected = [rule("[\n    \"a\",\n    \"b\",\n]", "deny"), rule("[\"c\"]", "ask"), rule("[\"d\"]", "deny")].concat();
        assert_eq!(after, format!("schema_version = 1\n{expected}"));
        assert_eq!(add_restrictions(&after, &rules).as_ref(), Ok(&after), "a path is added once");
        crate::policy::Bundle::parse(&after, "policy.toml").unwrap_or_else(|error| panic!("{error}\n{after}"));
        let remarks = after.replace("\"a\",\n", "\"a\", # first\n").replace("\"b\",\n", "\"b\", # second\n");
        let more = [paths(&["e"])];
        let shared = remarks.split("\n[[").take(2).collect::<Vec<_>>().join("\n[[");
        let shared = add_restrictions(&shared, &more).unwrap();
        assert!(shared.contains("[\n    \"a\", # first\n    \"b\", # second\n    \"e\",\n]"), "{shared}");
        assert_eq!(add_restrictions(&shared, &more).as_ref(), Ok(&shared), "{shared}");
        let own = "schema_version = 1\n[[capabilities.\"File.Read\".rules]]\npaths = [\"x\"]\ndecision = \"deny\"\n";
        let after = add_restrictions(own, &[paths(&["y"])]).unwrap();
        assert!(after.starts_with(own) && after.matches("[[").count() == 2, "a rule of the user is not changed: {after}");
    }

    #[test]
    fn existing_rules_in_a_different_format_are_recognized() {
        let text =
            "schema_version = 1\n[[capabilities.\"Shell.Exec\".rules]]\ndecision = 'deny' # no\ncommand = [ 'git',\n 'push' ]\n";
        assert_eq!(add_restrictions(text, &[deny(command(&[&["git"], &["push"]]))]).as_deref(), Ok(text));
    }

    #[test]
    fn tools_and_hosts_are_added_to_their_lists() {
        let names = ["WriteFile".to_owned(), "Mcp.docs/*".to_owned()];
        let tools = with_disabled_tools("schema_version = 1\n", &names).unwrap();
        assert_eq!(tools, "schema_version = 1\n\n[tools]\ndisabled = [\"WriteFile\", \"Mcp.docs/*\"]\n");
        assert_eq!(with_disabled_tools(&tools, &names).as_ref(), Ok(&tools));
        let hosts = with_blocked_domains("schema_version = 1\n", &["a.example".to_owned()]).unwrap();
        assert!(hosts.ends_with("[capabilities.\"Network.Http\"]\nblocked_domains = [\"a.example\"]\n"), "{hosts}");
        assert!(with_disabled_tools("tools = 3", &names).is_err());
        assert!(add_restrictions("x = ", &[]).is_err());
    }
}

//! Textual editing of a policy file. Rules are added and removed while comments, order and spacing are preserved.

use super::{REASON, SavedRule};
use crate::protocol::{CommandRule, GrantRule};
use jiff::Timestamp;
use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

const CAPABILITIES: &str = "capabilities";
pub(super) const RULES: &str = "rules";
const ALLOWED: &str = "allowed_tools";
const READABLE: &str = "readable_paths";
pub(super) const SHELL: &str = "Shell.Exec";
const NO_END: &str = "access to a directory cannot expire";
/// Capabilities to which rules can be saved.
const JOINED: [&str; 5] = [SHELL, "File.Write", "Tool.Custom", "Mcp.Invoke", "BackendTool.Invoke"];

/// Text to which rules were added, and the line number of the first added rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditedRules {
    pub text: String,
    pub line: usize,
}

/// Rule with examples of commands that it matches and commands that it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleWithExamples {
    pub rule: GrantRule,
    pub matches: Vec<String>,
    pub not_matches: Vec<String>,
}

/// Policy text to which an MCP server's tools were added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WithServer {
    pub text: String,
    /// Whether the text previously said nothing about MCP tools, in which case every call now needs approval.
    pub is_first: bool,
}

/// Line endings of a file, which are preserved by edits.
pub(super) struct LineEndings<'a> {
    byte_order_mark: bool,
    /// Whether to terminate new lines with CR LF.
    carriage_returns: bool,
    lines: Vec<&'a str>,
}

impl<'a> LineEndings<'a> {
    pub(super) fn normalize(text: &'a str) -> (Self, String) {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = rest.split_inclusive('\n').collect();
        let returns = lines.iter().filter(|line| line.ends_with("\r\n")).count();
        let ends = Self { byte_order_mark: rest.len() < text.len(), carriage_returns: returns * 2 > lines.len(), lines };
        (ends, rest.replace("\r\n", "\n"))
    }

    /// Restores the original line endings of lines that have not changed between `old` and `new`.
    pub(super) fn restore(&self, old: &str, new: &str) -> String {
        let mark = if self.byte_order_mark { "\u{feff}" } else { "" };
        let (before, after): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let lines = similar::TextDiff::from_slices(&before, &after);
        let line = |change: similar::Change<&str>| match (change.new_index(), change.old_index()) {
            (Some(_), Some(same)) => self.lines.get(same).copied().unwrap_or_default().to_owned(),
            (Some(_), None) if self.carriage_returns => change.value().replace('\n', "\r\n"),
            (Some(_), None) => change.value().to_owned(),
            (None, _) => String::new(),
        };
        lines.iter_all_changes().fold(mark.to_owned(), |text, change| text + &line(change))
    }
}

/// Returns the allow rules in the text that have the form in which aye saves rules, in line order.
pub(crate) fn list(text: &str) -> Result<Vec<SavedRule>, String> {
    let (_, text) = LineEndings::normalize(text);
    Ok(find_rules(&text)?.into_iter().map(|(_, kept)| kept).collect())
}

/// Adds rules. If a rule already exists, only its expiry time is updated.
pub(crate) fn add_rules(text: &str, rules: &[GrantRule], reason: &str, until: Option<Timestamp>) -> Result<EditedRules, String> {
    let (ends, before) = LineEndings::normalize(text);
    let mut document = parse(&before)?;
    // New rules are appended, so the positions of existing ones do not change.
    let known = find_rules(&before)?;
    let mut inserted: Vec<&GrantRule> = Vec::new();
    for rule in rules {
        if inserted.contains(&rule) {
            continue;
        }
        match known.iter().find(|(_, kept)| kept.rule == *rule) {
            // Only rules can have an end date.
            Some((RulePosition { list: READABLE, .. }, _)) if until.is_some() => return Err(NO_END.to_owned()),
            Some((place, kept)) if kept.expires_at != until => {
                let table = find_rule(&mut document, place).ok_or("cannot change the existing rule")?;
                table.insert("reason", toml_edit::value(reason));
                match until {
                    Some(end) => drop(table.insert("expires_at", Item::Value(time(end)?))),
                    None => drop(table.remove("expires_at")),
                }
            }
            Some(_) => {}
            None => {
                insert_rule(&mut document, rule, reason, until)?;
                inserted.push(rule);
            }
        }
    }
    let text = document.to_string();
    let first = find_rules(&text)?.into_iter().find(|(_, kept)| rules.contains(&kept.rule));
    let line = first.map(|(_, kept)| kept.line).ok_or("cannot add the rule to the file as intended")?;
    Ok(EditedRules { text: ends.restore(&before, &text), line })
}

/// Adds rules together with their examples. Rules that already exist are not changed.
pub(crate) fn add_rules_with_examples(text: &str, rules: &[RuleWithExamples], reason: &str) -> Result<String, String> {
    let (_, before) = LineEndings::normalize(text);
    let known: Vec<GrantRule> = find_rules(&before)?.into_iter().map(|(_, kept)| kept.rule).collect();
    let new: Vec<&RuleWithExamples> = rules.iter().filter(|new| !known.contains(&new.rule)).collect();
    if new.is_empty() {
        return Ok(text.to_owned());
    }
    let rules: Vec<GrantRule> = new.iter().map(|new| new.rule.clone()).collect();
    let text = add_rules(text, &rules, reason, None)?.text;
    let (ends, before) = LineEndings::normalize(&text);
    let mut document = parse(&before)?;
    let known = find_rules(&before)?;
    for new in new {
        let place = known.iter().find(|(_, kept)| kept.rule == new.rule).map(|(place, _)| place);
        let Some(table) = place.and_then(|place| find_rule(&mut document, place)) else { continue };
        for (key, examples) in [("match", &new.matches), ("not_match", &new.not_matches)] {
            if !examples.is_empty() && !table.contains_key(key) {
                table.insert(key, toml_edit::value(examples.iter().collect::<Array>()));
            }
        }
    }
    Ok(ends.restore(&before, &document.to_string()))
}

/// Adds all tools of an MCP server to the list of callable tools. If the text previously said nothing about MCP tools,
/// every call is made to require approval. Returns `None` if the tools are already listed.
pub(crate) fn with_server(text: &str, server: &str) -> Result<Option<WithServer>, String> {
    let (ends, before) = LineEndings::normalize(text);
    let mut document = parse(&before)?;
    let pattern = format!("{server}/*");
    let (capability, _) = capability(&mut document, "Mcp.Invoke")?;
    let is_new = capability.is_empty();
    let listed = capability.entry(ALLOWED).or_insert_with(|| toml_edit::value(Array::new()));
    let listed = listed.as_array_mut().ok_or_else(|| format!("`{ALLOWED}` must be an array"))?;
    if listed.iter().any(|tool| tool.as_str().is_some_and(|tool| tool == pattern || tool == "*" || tool == "*/*")) {
        return Ok(None);
    }
    listed.push(pattern);
    if is_new {
        capability.insert("requires_approval", toml_edit::value(true));
    }
    Ok(Some(WithServer { text: ends.restore(&before, &document.to_string()), is_first: is_new }))
}

/// Removes the rules for which `is_chosen` returns `true`. Returns the new text and the removed rules.
pub(crate) fn remove_rules(text: &str, is_chosen: impl Fn(&SavedRule) -> bool) -> Result<(String, Vec<SavedRule>), String> {
    let (ends, text) = LineEndings::normalize(text);
    let mut document = parse(&text)?;
    let (mut places, mut gone) = (Vec::new(), Vec::new());
    for (place, kept) in find_rules(&text)? {
        if is_chosen(&kept) {
            places.push(place);
            gone.push(kept);
        }
    }
    // Start at the end, so that the other positions remain valid.
    places.sort_by_key(|place| std::cmp::Reverse(place.at));
    for place in &places {
        match find_list(&mut document, place) {
            Some(Item::ArrayOfTables(tables)) => drop(tables.remove(place.at)),
            Some(Item::Value(Value::Array(array))) if place.list == READABLE => remove_path(array, place.at),
            Some(Item::Value(Value::Array(array))) => drop(array.remove(place.at)),
            Some(Item::None | Item::Value(_) | Item::Table(_)) | None => return Err("cannot remove the rule".to_owned()),
        }
    }
    if places.iter().any(|place| place.list == READABLE) {
        drop_empty_list(&mut document);
    }
    Ok((ends.restore(&text, &document.to_string()), gone))
}

/// Position of a rule in the document: its capability, list and index.
#[derive(Debug, Clone, Copy)]
struct RulePosition {
    capability: &'static str,
    list: &'static str,
    at: usize,
}

pub(super) fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())
}

/// Returns the position and content of each allow rule that has the form in which aye saves rules.
fn find_rules(text: &str) -> Result<Vec<(RulePosition, SavedRule)>, String> {
    let document = Document::parse(text).map_err(|error| error.message().to_owned())?;
    let mut all = Vec::new();
    let Some(capabilities) = document.get(CAPABILITIES).and_then(Item::as_table_like) else { return Ok(all) };
    if let Some(Item::Value(Value::Array(paths))) =
        capabilities.get(SHELL).and_then(Item::as_table_like).and_then(|table| table.get(READABLE))
    {
        for (at, value) in paths.iter().enumerate() {
            let Some(path) = value.as_str() else { continue };
            let start = value.span().map_or(0, |span| span.start);
            let rule = GrantRule::Readable { path: path.to_owned() };
            let kept = SavedRule { line: line_at(text, start), rule, reason: comment_above(text, start), expires_at: None };
            all.push((RulePosition { capability: SHELL, list: READABLE, at }, kept));
        }
    }
    for capability in JOINED {
        let rules = capabilities.get(capability).and_then(Item::as_table_like).and_then(|table| table.get(RULES));
        let tables: Vec<(&dyn TableLike, Option<std::ops::Range<usize>>)> = match rules {
            Some(Item::ArrayOfTables(tables)) => tables.iter().map(|table| (table as &dyn TableLike, table.span())).collect(),
            Some(Item::Value(Value::Array(array))) => {
                array.iter().filter_map(|value| Some((value.as_inline_table()? as &dyn TableLike, value.span()))).collect()
            }
            Some(Item::None | Item::Value(_) | Item::Table(_)) | None => continue,
        };
        for (at, (table, span)) in tables.into_iter().enumerate() {
            let line = line_at(text, span.map_or(0, |span| span.start));
            if let Some(kept) = parse_saved_rule(table, capability, line) {
                all.push((RulePosition { capability, list: RULES, at }, kept));
            }
        }
    }
    all.sort_by_key(|(_, kept)| kept.line);
    Ok(all)
}

fn line_at(text: &str, start: usize) -> usize {
    1 + text.as_bytes().iter().take(start).filter(|byte| **byte == b'\n').count()
}

/// Returns the comment on the line above an entry, provided that nothing precedes the entry on its line.
fn comment_above(text: &str, start: usize) -> String {
    let before = text.get(..start).unwrap_or_default().trim_end_matches([' ', '\t']);
    let above = before.strip_suffix('\n').and_then(|before| before.lines().next_back());
    above.and_then(|line| line.trim().strip_prefix('#')).unwrap_or_default().trim().to_owned()
}

/// Parses a table as a saved rule. Returns `None` if keys are missing or it has keys that saved rules do not have.
fn parse_saved_rule(table: &dyn TableLike, capability: &str, line: usize) -> Option<SavedRule> {
    let text = |key: &str| table.get(key).and_then(Item::as_str);
    let known = [
        "command",
        "paths",
        "exact",
        "args",
        "sandboxed",
        "hosts",
        "match",
        "not_match",
        "tools",
        "fingerprint",
        "decision",
        "reason",
        "expires_at",
    ];
    if text("decision") != Some("allow") || table.iter().any(|(key, _)| !known.contains(&key)) {
        return None;
    }
    let words = |key: &str| -> Option<Vec<String>> {
        table.get(key)?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let rule = if capability == SHELL {
        let switch = |key: &str| table.get(key).and_then(Item::as_bool).unwrap_or(false);
        let message = match table.get("args").map(Item::as_str) {
            None => false,
            Some(Some("message")) => true,
            Some(_) => return None,
        };
        let (exact, sandboxed) = (switch("exact"), switch("sandboxed"));
        let hosts = if table.contains_key("hosts") { words("hosts")? } else { Vec::new() };
        GrantRule::Command(CommandRule { words: words("command")?, exact, sandboxed, message, hosts })
    } else if let "Tool.Custom" | "Mcp.Invoke" | "BackendTool.Invoke" = capability {
        let [name] = <[String; 1]>::try_from(words("tools")?).ok()?;
        let fingerprint = text("fingerprint")?.to_owned();
        match capability {
            "Mcp.Invoke" => GrantRule::ServerTool { name, fingerprint },
            "BackendTool.Invoke" => GrantRule::BackendTool { name, fingerprint },
            _ => GrantRule::Tool { name, fingerprint },
        }
    } else {
        GrantRule::Write { paths: words("paths")? }
    };
    let expires_at = match table.get("expires_at") {
        Some(end) => Some(end.as_datetime()?.to_string().parse().ok()?),
        None => None,
    };
    Some(SavedRule { line, rule, reason: text("reason").unwrap_or_default().to_owned(), expires_at })
}

fn find_list<'a>(document: &'a mut DocumentMut, place: &RulePosition) -> Option<&'a mut Item> {
    document.get_mut(CAPABILITIES)?.as_table_like_mut()?.get_mut(place.capability)?.as_table_like_mut()?.get_mut(place.list)
}

/// Removes a path together with the comment that aye wrote above it. The user's own comments are preserved.
fn remove_path(paths: &mut Array, at: usize) {
    let own = format!("# {REASON}");
    let gone = paths.remove(at);
    let above = gone.decor().prefix().and_then(RawString::as_str).unwrap_or_default();
    let lines: Vec<&str> = above.lines().filter(|line| !line.trim_start().starts_with(&own)).collect();
    let comments = lines.join("\n").trim_end().to_owned();
    if !comments.contains('#') {
        return;
    }
    match paths.get_mut(at) {
        Some(next) => {
            let below = next.decor().prefix().and_then(RawString::as_str).unwrap_or_default().to_owned();
            next.decor_mut().set_prefix(format!("{comments}\n{}", below.trim_start_matches('\n')));
        }
        None => paths.set_trailing(format!("{comments}\n")),
    }
}

/// Removes the list of readable paths if it contains neither paths nor comments.
fn drop_empty_list(document: &mut DocumentMut) {
    let shell = document.get_mut(CAPABILITIES).and_then(Item::as_table_like_mut).and_then(|all| all.get_mut(SHELL));
    let Some(shell) = shell.and_then(Item::as_table_like_mut) else { return };
    let is_empty = |list: &Item| {
        let array = list.as_array();
        array.is_some_and(|array| array.is_empty() && !array.trailing().as_str().unwrap_or_default().contains('#'))
    };
    if shell.get(READABLE).is_some_and(is_empty) {
        shell.remove(READABLE);
    }
}

fn find_rule<'a>(document: &'a mut DocumentMut, place: &RulePosition) -> Option<&'a mut dyn TableLike> {
    match find_list(document, place)? {
        Item::ArrayOfTables(tables) => tables.get_mut(place.at).map(|table| table as &mut dyn TableLike),
        Item::Value(Value::Array(array)) => {
            array.get_mut(place.at).and_then(Value::as_inline_table_mut).map(|table| table as &mut dyn TableLike)
        }
        Item::None | Item::Value(_) | Item::Table(_) => None,
    }
}

/// Returns the table for a capability, and whether it is an inline table. If the table does not exist, it is created.
pub(super) fn capability<'a>(document: &'a mut DocumentMut, name: &str) -> Result<(&'a mut dyn TableLike, bool), String> {
    let no_table = || format!("`{CAPABILITIES}` must be a table");
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let capabilities = document.entry(CAPABILITIES).or_insert_with(implicit).as_table_like_mut().ok_or_else(no_table)?;
    let capability = capabilities.entry(name).or_insert_with(implicit);
    let is_inline = capability.is_inline_table();
    Ok((capability.as_table_like_mut().ok_or_else(no_table)?, is_inline))
}

fn insert_rule(document: &mut DocumentMut, rule: &GrantRule, reason: &str, until: Option<Timestamp>) -> Result<(), String> {
    let (capability, inline) = capability(document, rule.capability())?;
    if let GrantRule::Readable { path } = rule {
        return insert_readable(capability, path, reason, until);
    }
    let empty = || if inline { toml_edit::value(Array::new()) } else { Item::ArrayOfTables(ArrayOfTables::new()) };
    match capability.entry(RULES).or_insert_with(empty) {
        Item::ArrayOfTables(tables) => {
            let mut table = Table::new();
            table.decor_mut().set_prefix("\n");
            fill_rule(&mut table, rule, reason, until)?;
            tables.push(table);
        }
        Item::Value(Value::Array(array)) => {
            let mut table = InlineTable::new();
            fill_rule(&mut table, rule, reason, until)?;
            array.push(table);
        }
        Item::None | Item::Value(_) | Item::Table(_) => return Err(format!("`{RULES}` must be an array of rules")),
    }
    Ok(())
}

/// Adds a readable path on a line of its own, below a comment that gives the reason.
fn insert_readable(shell: &mut dyn TableLike, path: &str, reason: &str, until: Option<Timestamp>) -> Result<(), String> {
    if until.is_some() {
        return Err(NO_END.to_owned());
    }
    let paths = shell.entry(READABLE).or_insert_with(|| toml_edit::value(Array::new()));
    let paths = paths.as_array_mut().ok_or_else(|| format!("`{READABLE}` must be an array"))?;
    // Comments after the last entry remain before the new entry.
    let before = paths.trailing().as_str().unwrap_or_default().trim_end().to_owned();
    let mut value = Value::from(path);
    value.decor_mut().set_prefix(format!("{before}\n    # {reason}\n    "));
    paths.push_formatted(value);
    paths.set_trailing_comma(true);
    paths.set_trailing("\n");
    Ok(())
}

fn fill_rule(table: &mut dyn TableLike, rule: &GrantRule, reason: &str, until: Option<Timestamp>) -> Result<(), String> {
    let list = |words: &[String]| toml_edit::value(words.iter().collect::<Array>());
    match rule {
        GrantRule::Command(rule) => {
            table.insert("command", list(&rule.words));
            for (key, _) in [("exact", rule.exact), ("sandboxed", rule.sandboxed)].into_iter().filter(|(_, is_set)| *is_set) {
                table.insert(key, toml_edit::value(true));
            }
            if rule.message {
                table.insert("args", toml_edit::value("message"));
            }
            if !rule.hosts.is_empty() {
                table.insert("hosts", list(&rule.hosts));
            }
        }
        GrantRule::Tool { name, fingerprint }
        | GrantRule::ServerTool { name, fingerprint }
        | GrantRule::BackendTool { name, fingerprint } => {
            table.insert("tools", list(std::slice::from_ref(name)));
            table.insert("fingerprint", toml_edit::value(fingerprint));
        }
        GrantRule::Write { paths } => drop(table.insert("paths", list(paths))),
        GrantRule::Readable { .. } => return Err("read access to a directory cannot be saved as a rule".to_owned()),
    }
    table.insert("decision", toml_edit::value("allow"));
    table.insert("reason", toml_edit::value(reason));
    if let Some(end) = until {
        table.insert("expires_at", Item::Value(time(end)?));
    }
    if let GrantRule::Command(rule) = rule {
        let (matches, not_matches) = rule.examples();
        for (key, examples) in [("match", matches), ("not_match", not_matches)] {
            if !examples.is_empty() {
                table.insert(key, list(&examples));
            }
        }
    }
    Ok(())
}

fn time(at: Timestamp) -> Result<Value, String> {
    let time: toml_edit::Datetime = at.to_string().parse().map_err(|_| format!("`{at}` is not a valid TOML date-time"))?;
    Ok(time.into())
}

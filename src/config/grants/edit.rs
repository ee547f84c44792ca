//! A policy file as text: rules put in and taken out, with comments, order and blanks of the rest kept.

use super::Kept;
use crate::protocol::GrantRule;
use jiff::Timestamp;
use toml_edit::{Array, ArrayOfTables, Document, DocumentMut, InlineTable, Item, Table, TableLike, Value};

const CAPABILITIES: &str = "capabilities";
const RULES: &str = "rules";
/// Those that saved rules can join.
const JOINED: [&str; 4] = ["Shell.Exec", "File.Write", "Tool.Custom", "Mcp.Invoke"];

/// A text with rules put in, and the line of the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub text: String,
    pub line: usize,
}

/// How lines end in a file, each of them; kept as they were.
struct Ends<'a> {
    byte_order_mark: bool,
    /// How a new line ends.
    carriage_returns: bool,
    lines: Vec<&'a str>,
}

impl<'a> Ends<'a> {
    fn take(text: &'a str) -> (Self, String) {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = rest.split_inclusive('\n').collect();
        let returns = lines.iter().filter(|line| line.ends_with("\r\n")).count();
        let ends = Self { byte_order_mark: rest.len() < text.len(), carriage_returns: returns * 2 > lines.len(), lines };
        (ends, rest.replace("\r\n", "\n"))
    }

    /// Lines that are as they were get back the end they had.
    fn give_back(&self, old: &str, new: &str) -> String {
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

/// The allow rules of a text that a saved rule could be, in the order of their lines.
pub fn list(text: &str) -> Result<Vec<Kept>, String> {
    let (_, text) = Ends::take(text);
    Ok(found(&text)?.into_iter().map(|(_, kept)| kept).collect())
}

/// Puts rules in. One that stands there already is not put in twice; its end is set anew.
pub fn added(text: &str, rules: &[GrantRule], reason: &str, until: Option<Timestamp>) -> Result<Added, String> {
    let (ends, before) = Ends::take(text);
    let mut document = parse(&before)?;
    for rule in rules {
        let same = found(&document.to_string())?.into_iter().find(|(_, kept)| kept.rule == *rule);
        match same {
            Some((place, kept)) if kept.expires_at != until => {
                let table = rule_at(&mut document, &place).ok_or("the rule that is there cannot be changed")?;
                table.insert("reason", toml_edit::value(reason));
                match until {
                    Some(end) => drop(table.insert("expires_at", Item::Value(time(end)?))),
                    None => drop(table.remove("expires_at")),
                }
            }
            Some(_) => {}
            None => put(&mut document, rule, reason, until)?,
        }
    }
    let text = document.to_string();
    let first = found(&text)?.into_iter().find(|(_, kept)| rules.contains(&kept.rule));
    let line = first.map(|(_, kept)| kept.line).ok_or("the rule did not come out as it was meant")?;
    Ok(Added { text: ends.give_back(&before, &text), line })
}

/// Takes out the rules on these lines and gives them back; a line without one is an error.
pub fn removed(text: &str, lines: &[usize]) -> Result<(String, Vec<Kept>), String> {
    let (ends, text) = Ends::take(text);
    let mut document = parse(&text)?;
    let (mut places, mut gone) = (Vec::new(), Vec::new());
    for (place, kept) in found(&text)? {
        if lines.contains(&kept.line) {
            places.push(place);
            gone.push(kept);
        }
    }
    if let Some(line) = lines.iter().find(|line| !gone.iter().any(|kept| kept.line == **line)) {
        return Err(format!("no saved rule stands on line {line}"));
    }
    // From the end, so that what comes before keeps its place.
    places.sort_by_key(|place| std::cmp::Reverse(place.at));
    for place in &places {
        match rules_of(&mut document, place.capability) {
            Some(Item::ArrayOfTables(tables)) => drop(tables.remove(place.at)),
            Some(Item::Value(Value::Array(array))) => drop(array.remove(place.at)),
            Some(Item::None | Item::Value(_) | Item::Table(_)) | None => return Err("the rule cannot be taken out".to_owned()),
        }
    }
    Ok((ends.give_back(&text, &document.to_string()), gone))
}

/// Which rule of which capability.
#[derive(Debug, Clone, Copy)]
struct Place {
    capability: &'static str,
    at: usize,
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())
}

/// Every rule that allows and is one that could have been saved, with its line.
fn found(text: &str) -> Result<Vec<(Place, Kept)>, String> {
    let document = Document::parse(text).map_err(|error| error.message().to_owned())?;
    let mut all = Vec::new();
    let Some(capabilities) = document.get(CAPABILITIES).and_then(Item::as_table_like) else { return Ok(all) };
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
            let start = span.map_or(0, |span| span.start);
            let line = 1 + text.as_bytes().iter().take(start).filter(|byte| **byte == b'\n').count();
            if let Some(kept) = kept(table, capability, line) {
                all.push((Place { capability, at }, kept));
            }
        }
    }
    all.sort_by_key(|(_, kept)| kept.line);
    Ok(all)
}

/// The rule as it would have been saved; `None` for one that says more or something else.
fn kept(table: &dyn TableLike, capability: &str, line: usize) -> Option<Kept> {
    let text = |key: &str| table.get(key).and_then(Item::as_str);
    let known = ["command", "paths", "exact", "tools", "fingerprint", "decision", "reason", "expires_at"];
    if text("decision") != Some("allow") || table.iter().any(|(key, _)| !known.contains(&key)) {
        return None;
    }
    let words = |key: &str| -> Option<Vec<String>> {
        table.get(key)?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let rule = if capability == "Shell.Exec" {
        GrantRule::Command { words: words("command")?, exact: table.get("exact").and_then(Item::as_bool).unwrap_or(false) }
    } else if let "Tool.Custom" | "Mcp.Invoke" = capability {
        let [name] = <[String; 1]>::try_from(words("tools")?).ok()?;
        let fingerprint = text("fingerprint")?.to_owned();
        if capability == "Mcp.Invoke" {
            GrantRule::ServerTool { name, fingerprint }
        } else {
            GrantRule::Tool { name, fingerprint }
        }
    } else {
        GrantRule::Write { paths: words("paths")? }
    };
    let expires_at = match table.get("expires_at") {
        Some(end) => Some(end.as_datetime()?.to_string().parse().ok()?),
        None => None,
    };
    Some(Kept { line, rule, reason: text("reason").unwrap_or_default().to_owned(), expires_at })
}

fn rules_of<'a>(document: &'a mut DocumentMut, capability: &str) -> Option<&'a mut Item> {
    document.get_mut(CAPABILITIES)?.as_table_like_mut()?.get_mut(capability)?.as_table_like_mut()?.get_mut(RULES)
}

fn rule_at<'a>(document: &'a mut DocumentMut, place: &Place) -> Option<&'a mut dyn TableLike> {
    match rules_of(document, place.capability)? {
        Item::ArrayOfTables(tables) => tables.get_mut(place.at).map(|table| table as &mut dyn TableLike),
        Item::Value(Value::Array(array)) => {
            array.get_mut(place.at).and_then(Value::as_inline_table_mut).map(|table| table as &mut dyn TableLike)
        }
        Item::None | Item::Value(_) | Item::Table(_) => None,
    }
}

fn put(document: &mut DocumentMut, rule: &GrantRule, reason: &str, until: Option<Timestamp>) -> Result<(), String> {
    let no_table = || format!("`{CAPABILITIES}` is no table");
    let implicit = || {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    };
    let capabilities = document.entry(CAPABILITIES).or_insert_with(implicit).as_table_like_mut().ok_or_else(no_table)?;
    let capability = capabilities.entry(rule.capability()).or_insert_with(implicit);
    let inline = capability.is_inline_table();
    let capability = capability.as_table_like_mut().ok_or_else(no_table)?;
    let empty = || if inline { toml_edit::value(Array::new()) } else { Item::ArrayOfTables(ArrayOfTables::new()) };
    match capability.entry(RULES).or_insert_with(empty) {
        Item::ArrayOfTables(tables) => {
            let mut table = Table::new();
            table.decor_mut().set_prefix("\n");
            fill(&mut table, rule, reason, until)?;
            tables.push(table);
        }
        Item::Value(Value::Array(array)) => {
            let mut table = InlineTable::new();
            fill(&mut table, rule, reason, until)?;
            array.push(table);
        }
        Item::None | Item::Value(_) | Item::Table(_) => return Err(format!("`{RULES}` is no list of rules")),
    }
    Ok(())
}

fn fill(table: &mut dyn TableLike, rule: &GrantRule, reason: &str, until: Option<Timestamp>) -> Result<(), String> {
    let list = |words: &[String]| toml_edit::value(words.iter().collect::<Array>());
    match rule {
        GrantRule::Command { words, exact } => {
            table.insert("command", list(words));
            if *exact {
                table.insert("exact", toml_edit::value(true));
            }
        }
        GrantRule::Tool { name, fingerprint } | GrantRule::ServerTool { name, fingerprint } => {
            table.insert("tools", list(std::slice::from_ref(name)));
            table.insert("fingerprint", toml_edit::value(fingerprint));
        }
        GrantRule::Write { paths } => drop(table.insert("paths", list(paths))),
    }
    table.insert("decision", toml_edit::value("allow"));
    table.insert("reason", toml_edit::value(reason));
    if let Some(end) = until {
        table.insert("expires_at", Item::Value(time(end)?));
    }
    Ok(())
}

fn time(at: Timestamp) -> Result<Value, String> {
    let time: toml_edit::Datetime = at.to_string().parse().map_err(|_| format!("`{at}` is no time that TOML knows"))?;
    Ok(time.into())
}

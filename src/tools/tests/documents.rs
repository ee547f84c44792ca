//! Checks that docs/TOOLS.md lists the current tools. `UPDATE=1` regenerates the list.

use super::adding::CountWords;
use crate::tools::registry::built_in_tools;
use crate::tools::tool::Tool;
use std::fmt::Write;
use std::path::Path;

const START: &str = "<!-- tools -->\n";
const END: &str = "<!-- end -->\n";

/// Returns a row for each tool, in the order in which the model sees them.
fn list() -> String {
    let mut rows = "| tool | capability | description for the model | aliases |\n|---|---|---|---|\n".to_owned();
    for tool in built_in_tools().filter(|tool| tool.name() != CountWords::NAME) {
        let told = tool.description();
        let first = told.split_inclusive(". ").next().unwrap_or(told).lines().next().unwrap_or_default().trim_end();
        let others: Vec<_> = tool.alias_names().iter().map(|name| format!("`{name}`")).collect();
        let first = first.replace('|', "\\|");
        let _ = writeln!(rows, "| {} | {} | {first} | {} |", tool.name(), tool.capability(), others.join(" "));
    }
    rows
}

#[test]
fn the_documented_tool_list_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/TOOLS.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(START).expect("the start of the list");
    let (shown, after) = rest.split_once(END).expect("the end of the list");
    let now = list();
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(&path, format!("{before}{START}{now}{END}{after}")).unwrap();
    }
    assert!(shown == now, "docs/TOOLS.md is outdated; `UPDATE=1` regenerates it:\n{now}");
}

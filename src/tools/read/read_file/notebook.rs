//! Converts notebooks to text: the cells in order, with their outputs.

use crate::protocol::{cut_position_after, cut_position_before};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Maximum number of bytes to return from the start and end of an output.
const OUTPUT_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
struct Notebook {
    #[serde(default)]
    metadata: Value,
    cells: Option<Vec<Cell>>,
    /// Where cells are found in notebooks older than version 4.
    #[serde(default)]
    worksheets: Vec<Worksheet>,
}

#[derive(Deserialize)]
struct Worksheet {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default, alias = "input")]
    source: Lines,
    #[serde(default, alias = "prompt_number")]
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    output_type: String,
    /// Name of the stream to which the output was written.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    text: Lines,
    #[serde(default)]
    data: Map<String, Value>,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
}

/// Text, given either as one string or as a list of lines.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Lines {
    One(String),
    Many(Vec<String>),
    #[default]
    None,
}

impl Lines {
    fn join(&self) -> String {
        match self {
            Self::One(text) => text.clone(),
            Self::Many(lines) => lines.concat(),
            Self::None => String::new(),
        }
    }
}

/// Converts a notebook's JSON to text.
///
/// # Errors
///
/// Returns the reason if the JSON is not a notebook.
pub(super) fn text(json: &[u8]) -> Result<String, String> {
    let json = json.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(json);
    let notebook: Notebook = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let cells = match notebook.cells {
        Some(cells) => cells,
        None if !notebook.worksheets.is_empty() => notebook.worksheets.into_iter().flat_map(|sheet| sheet.cells).collect(),
        None => return Err("no cells".to_owned()),
    };
    let language = notebook.metadata.pointer("/language_info/name").or(notebook.metadata.pointer("/kernelspec/language"));
    let language = language.and_then(Value::as_str).map(|name| format!(", {name}")).unwrap_or_default();
    let noun = if cells.len() == 1 { "cell" } else { "cells" };
    let mut text =
        format!("[notebook{language}, {} {noun}; `raw` returns its JSON, which is what EditFile changes]\n", cells.len());
    for (number, cell) in (1..).zip(&cells) {
        write_cell(&mut text, number, cell);
    }
    Ok(text)
}

fn write_cell(text: &mut String, number: usize, cell: &Cell) {
    let run = cell.execution_count.map(|count| format!(", run {count}")).unwrap_or_default();
    let _ = writeln!(text, "\n[cell {number}: {}{run}]", cell.cell_type);
    add(text, &cell.source.join());
    for output in &cell.outputs {
        write_output(text, output);
    }
}

fn write_output(text: &mut String, output: &Output) {
    match output.output_type.as_str() {
        "stream" => {
            let name = output.name.as_deref().unwrap_or("stdout");
            let _ = writeln!(text, "[{name}]");
            add(text, &shortened(&output.text.join()));
        }
        "error" | "pyerr" => {
            let _ = writeln!(text, "[error] {}: {}", output.ename, shortened(&output.evalue));
        }
        kind => {
            for (media_type, value) in output.data.iter().filter(|(media_type, _)| !media_type.starts_with("text/")) {
                let bytes = value.as_str().map_or_else(|| value.to_string().len(), |text| text.len() / 4 * 3);
                let _ = writeln!(text, "[{kind}: {media_type}, {bytes} bytes]");
            }
            let plain = ["text/plain", "text/markdown", "text/latex", "text/html"].iter().find_map(|name| output.data.get(*name));
            let said = plain.and_then(|value| serde_json::from_value(value.clone()).ok()).unwrap_or(Lines::None).join();
            let said = if said.is_empty() { output.text.join() } else { said };
            if !said.is_empty() {
                let _ = writeln!(text, "[{kind}]");
                add(text, &shortened(&said));
            }
        }
    }
}

/// Appends text and, if it does not end with a line break, adds one.
fn add(text: &mut String, piece: &str) {
    text.push_str(piece);
    if !piece.is_empty() && !piece.ends_with('\n') {
        text.push('\n');
    }
}

fn shortened(said: &str) -> String {
    if said.len() <= OUTPUT_BYTES {
        return said.to_owned();
    }
    let (head, tail) = (cut_position_before(said, OUTPUT_BYTES / 5 * 4), cut_position_after(said, said.len() - OUTPUT_BYTES / 5));
    format!("{}\n[... {} bytes left out ...]\n{}", &said[..head], tail - head, &said[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn notebooks_are_read_as_cells() {
        let notebook = json!({
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "cells": [
                {"cell_type": "markdown", "source": ["# Title\n", "words"]},
                {"cell_type": "code", "execution_count": 3, "source": "print(1)\nplot()", "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                    {"output_type": "display_data", "data": {"image/png": "AAAABBBB", "text/plain": ["<Figure>"]}},
                    {"output_type": "error", "ename": "NameError", "evalue": "no x", "traceback": ["\u{1b}[31m…"]},
                ]},
                {"cell_type": "raw", "source": []},
            ],
        });
        let text = text(notebook.to_string().as_bytes()).unwrap();
        let expected = "[notebook, python, 3 cells; `raw` returns its JSON, which is what EditFile changes]\n\n[cell 1: markdown]\n# Title\nwords\n\n\
            [cell 2: code, run 3]\nprint(1)\nplot()\n[stdout]\n1\n[display_data: image/png, 6 bytes]\n[display_data]\n<Figure>\n\
            [error] NameError: no x\n\n[cell 3: raw]\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn old_notebooks_are_supported_and_broken_ones_are_errors() {
        let old = json!({"worksheets": [{"cells": [{"cell_type": "code", "input": "x = 1", "prompt_number": 2, "outputs": [
            {"output_type": "pyout", "text": "1"}]}]}]});
        assert!(text(old.to_string().as_bytes()).unwrap().contains("[cell 1: code, run 2]\nx = 1\n[pyout]\n1\n"));
        assert_eq!(text(b"{}").unwrap_err(), "no cells");
        assert!(text(b"{\"cells\": [").unwrap_err().contains("EOF"));
    }

    #[test]
    fn long_cell_outputs_are_shortened() {
        let said = "é".repeat(OUTPUT_BYTES);
        let short = shortened(&said);
        assert!(short.len() < OUTPUT_BYTES + 100 && short.contains("bytes left out"), "{}", short.len());
        let fits = "x".repeat(OUTPUT_BYTES);
        assert_eq!(shortened(&fits), fits);
    }
}

//! Determines document formats by file name extension.

use super::outline::Outline;
use super::{data, markdown};
use std::path::Path;

/// Outlines a text with LF endings in the format that the file name indicates.
pub(super) fn outline(path: &Path, text: &str) -> Outline {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase();
    match extension.as_str() {
        "md" | "markdown" | "mdown" | "mkd" | "mdx" | "qmd" | "rmd" => markdown::outline(text),
        "json" | "jsonc" | "ipynb" | "webmanifest" | "geojson" => data::json(text),
        "jsonl" | "ndjson" => data::json_lines(text),
        "toml" => data::toml(text),
        "yaml" | "yml" => data::yaml(text),
        "ini" | "cfg" | "conf" | "properties" | "editorconfig" | "service" | "desktop" => data::ini(text),
        "csv" => data::columns(text, ','),
        "tsv" => data::columns(text, '\t'),
        "txt" | "text" | "" => {
            let outline = markdown::outline(text);
            if outline.parts.is_empty() { data::plain_outline(text) } else { outline }
        }
        _ => data::plain_outline(text),
    }
}

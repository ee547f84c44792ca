//! Text for display: width, wrapping, truncation and sanitization.

mod ansi;
mod confusables;
mod escape;
mod file_uri;
mod fuzzy;
mod hex;
mod home;
mod json;
mod lines;
mod mixed_script;
mod sanitize;
mod shell_line;
mod terminal_lines;
mod width;
mod words;
mod wrap;

pub(crate) use ansi::{Ansi, Hue, Paint, paints_within, parse_paints};
pub(crate) use file_uri::file_uri;
pub(crate) use fuzzy::Fuzzy;
pub(crate) use hex::hex;
pub(crate) use home::abbreviate_home;
pub(crate) use json::rewrite_strings;
pub(crate) use lines::{BoundedLine, LineSplitter};
pub(crate) use mixed_script::find_mixed_word;
pub(crate) use sanitize::{Filter, clean, clean_line, reveal, reveal_at, reveal_line, reveal_name, reveal_rows};
pub(crate) use shell_line::quoted_line;
pub(crate) use terminal_lines::Cleaner;
pub(crate) use width::{WidthDoubt, expand_tabs, grapheme_end, truncate, truncate_middle, width, width_doubt};
pub(crate) use words::split_words;
pub(crate) use wrap::{wrap, wrap_exact, wrap_keeping};

#[cfg(test)]
mod tests;

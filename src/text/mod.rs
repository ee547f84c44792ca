//! Text for the screen: widths, wrapping, truncation and sanitizing.

mod ansi;
mod confusables;
mod escape;
mod fuzzy;
mod hex;
mod home;
mod lines;
mod mixed_script;
mod sanitize;
mod terminal_lines;
mod width;
mod wrap;

pub use ansi::{Ansi, Hue, Paint, painted, paints_in};
pub use fuzzy::Fuzzy;
pub use hex::hex;
pub use home::abbreviate_home;
pub use lines::{Line, LineSplitter};
pub use mixed_script::mixed;
pub use sanitize::{Filter, clean, clean_line, reveal, reveal_at, reveal_line, reveal_name, reveal_rows};
pub use terminal_lines::Cleaner;
pub use width::{Doubt, doubt, expand_tabs, grapheme_end, truncate, truncate_middle, width};
pub use wrap::{wrap, wrap_exact, wrap_keeping};

#[cfg(test)]
mod tests;

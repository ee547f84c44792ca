//! Text as cells: widths, wrapping, truncation and the neutralising of what comes from outside.

mod ansi;
mod clean;
mod escape;
mod fuzzy;
mod home;
mod line;
mod lines;
mod mark;
mod script;
mod width;
mod wrap;

pub use ansi::{Ansi, Hue, Paint, painted, paints_in};
pub use clean::{Filter, clean, clean_line, reveal, reveal_at, reveal_line, reveal_name, reveal_rows};
pub use fuzzy::Fuzzy;
pub use home::abbreviate_home;
pub use line::Cleaner;
pub use lines::{Line, LineSplitter};
pub use script::mixed;
pub use width::{Doubt, doubt, expand_tabs, grapheme_end, truncate, truncate_middle, width};
pub use wrap::{wrap, wrap_exact, wrap_keeping};

#[cfg(test)]
mod tests;

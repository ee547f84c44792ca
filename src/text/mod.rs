//! Text as cells: widths, wrapping, truncation and the neutralising of what comes from outside.

mod ansi;
mod clean;
mod escape;
mod fuzzy;
mod line;
mod mark;
mod width;
mod wrap;

pub use ansi::{Ansi, Hue, Paint, painted, paints_in};
pub use clean::{Filter, clean, reveal, reveal_at};
pub use fuzzy::Fuzzy;
pub use line::Cleaner;
pub use width::{Doubt, doubt, expand_tabs, truncate, truncate_middle, width};
pub use wrap::{wrap, wrap_exact, wrap_keeping};

#[cfg(test)]
mod tests;

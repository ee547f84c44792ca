//! Text as cells: widths, wrapping, truncation and the neutralising of what comes from outside.

mod clean;
mod escape;
mod line;
mod mark;
mod width;
mod wrap;

pub use clean::{Filter, clean, reveal, reveal_at};
pub use line::Cleaner;
pub use width::{expand_tabs, truncate, truncate_middle, width};
pub use wrap::{wrap, wrap_exact};

#[cfg(test)]
mod tests;

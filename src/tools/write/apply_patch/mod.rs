//! ApplyPatch: changes of several files in one text, all of them or none.

mod apply;
mod choose;
mod find;
pub(in crate::tools) mod parse;
#[cfg(test)]
mod tests;

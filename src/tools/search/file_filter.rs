//! Selects files by path during a search.

use super::walk::glob as compiled;
use crate::protocol::ToolError;
use crate::tools::error::invalid;
use globset::{GlobSet, GlobSetBuilder};
use ignore::types::{FileTypeDef, Types, TypesBuilder};
use std::path::Path;

/// Selects all files, or those that match globs and types.
#[derive(Default)]
pub(in crate::tools) struct FileFilter {
    wanted: Option<GlobSet>,
    unwanted: Option<GlobSet>,
    types: Option<Types>,
}

impl FileFilter {
    /// Compiles the selection. A glob that starts with `!` excludes files. Types are names such as `rust`.
    pub(in crate::tools) fn new(globs: &[String], types: &[String]) -> Result<Self, ToolError> {
        let globs: Vec<&str> = globs.iter().flat_map(|globs| split_globs(globs)).collect();
        let (unwanted, wanted): (Vec<&str>, Vec<&str>) = globs.iter().partition(|glob| glob.starts_with('!'));
        let unwanted: Vec<&str> = unwanted.iter().map(|glob| glob.trim_start_matches('!')).collect();
        let types: Vec<&str> =
            types.iter().flat_map(|types| types.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect();
        Ok(Self { wanted: compile_globs(&wanted, false)?, unwanted: compile_globs(&unwanted, true)?, types: kinds(&types)? })
    }

    pub(in crate::tools) fn is_all(&self) -> bool {
        self.wanted.is_none() && self.unwanted.is_none() && self.types.is_none()
    }

    /// Returns whether a file, given by its path relative to the start of the search, is selected.
    pub(in crate::tools) fn matches(&self, below: &Path) -> bool {
        self.wanted.as_ref().is_none_or(|set| set.is_match(below))
            && self.unwanted.as_ref().is_none_or(|set| !set.is_match(below))
            && self.types.as_ref().is_none_or(|types| types.matched(below, false).is_whitelist())
    }
}

/// Splits text that contains several globs at the commas outside braces.
fn split_globs(globs: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let split = move |letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    globs.split(split).map(str::trim).filter(|glob| !glob.is_empty())
}

/// Compiles globs. A glob without a slash matches names at any depth, and one that ends in a slash matches every path
/// below that directory.
fn compile_globs(globs: &[&str], with_all_below: bool) -> Result<Option<GlobSet>, ToolError> {
    if globs.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for glob in globs {
        let plain = glob.trim_start_matches("./");
        let name = plain.trim_end_matches('/');
        let whole = if name.contains('/') { name.trim_start_matches('/').to_owned() } else { format!("**/{name}") };
        let directory = plain.ends_with('/');
        if !directory {
            set.add(compiled("glob", &whole, false)?);
        }
        if directory || with_all_below {
            set.add(compiled("glob", &format!("{whole}/**"), false)?);
        }
    }
    set.build().map(Some).map_err(|error| invalid(format!("`glob`: {error}; use fewer or shorter patterns")))
}

fn kinds(names: &[&str]) -> Result<Option<Types>, ToolError> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let known = builder.definitions();
    for name in names {
        let lower = name.trim_start_matches(['.', '*']).to_lowercase();
        let found = known.iter().find(|kind| kind.name() == lower).ok_or_else(|| unknown_type(&lower, &known))?;
        builder.select(found.name());
    }
    builder.build().map(Some).map_err(|error| invalid(format!("`type`: {error}")))
}

/// Builds the error for an unknown type. It suggests types with similar names, and those that have the given name as an
/// extension.
fn unknown_type(name: &str, known: &[FileTypeDef]) -> ToolError {
    const LIKE: f64 = 0.85;
    let extension = format!("*.{name}");
    let by_extension = known.iter().filter(|kind| kind.globs().contains(&extension)).map(FileTypeDef::name);
    let mut near: Vec<(f64, &str)> = known.iter().map(|kind| (strsim::jaro_winkler(kind.name(), name), kind.name())).collect();
    near.retain(|(score, _)| *score >= LIKE);
    near.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut names: Vec<&str> = by_extension.chain(near.into_iter().map(|(_, name)| name)).collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(*name));
    names.truncate(3);
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let meant = match names.as_slice() {
        [] => String::new(),
        names => format!("did you mean {}? Or ", names.join(" or ")),
    };
    invalid(format!("`type`: unknown file type `{name}`; {meant}use `glob`, for example `*.{name}`"))
}

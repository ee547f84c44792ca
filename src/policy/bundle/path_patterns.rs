//! Path patterns in a bundle.

use super::reader::{BundleError, BundleTable, SpannedText};
use crate::policy::paths::Pattern;

/// Reads a list of path patterns.
pub(crate) fn patterns(section: &BundleTable<'_>, key: &str) -> Result<Option<Vec<Pattern>>, BundleError> {
    let one = |text: SpannedText| {
        if text.text.is_empty() || text.text.contains('\0') {
            return Err(section.source.error(&text.span, format!("`{key}` contains an empty path; expected a prefix or a glob")));
        }
        let open = text.text.replace("${workspace}", "");
        if open.contains("${") {
            let message = format!("unknown variable in `{}`; expected `${{workspace}}` or `~`", text.text);
            return Err(section.source.error(&text.span, message));
        }
        globset::Glob::new(&text.text.replace("${workspace}", "/w")).map_err(|error| {
            section.source.error(&text.span, format!("`{}` is not a valid glob: {}", text.text, error.kind()))
        })?;
        Ok(Pattern { line: section.source.line(&text.span), text: text.text })
    };
    section.texts(key)?.map(|texts| texts.into_iter().map(one).collect()).transpose()
}

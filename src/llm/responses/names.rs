//! Function names that the API accepts.

use std::borrow::Cow;

/// Maximum length of a function name, in characters; the API rejects longer ones.
const MAX_NAME_LEN: usize = 64;

/// Returns a valid function name, because a model may invent invalid ones.
pub(crate) fn function_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(MAX_NAME_LEN).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}

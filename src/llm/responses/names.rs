//! Function names in the form that the API accepts.

use std::borrow::Cow;

/// Maximum length in characters of a function name that the API accepts.
const MAX_NAME_LEN: usize = 64;

/// Returns a valid form of a function name, because a model may make up an invalid one.
pub(crate) fn function_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(MAX_NAME_LEN).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}

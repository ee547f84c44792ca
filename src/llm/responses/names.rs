//! Names of functions as the API takes them.

use std::borrow::Cow;

/// The API refuses longer names of functions.
const MAX_NAME_LEN: usize = 64;

/// The name of a function: a model may make up any.
pub fn function_name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME_LEN && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let fitted: String = name.chars().map(|c| if fits(c) { c } else { '_' }).take(MAX_NAME_LEN).collect();
    Cow::Owned(if fitted.is_empty() { "unnamed".to_owned() } else { fitted })
}

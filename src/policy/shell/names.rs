//! Forms of a word: the name of an assignment, a descriptor, a string that runs a command when evaluated as arithmetic.

/// Returns whether a word is `{name}` before a redirect.
pub(crate) fn is_descriptor_name(raw: &str) -> bool {
    let name = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    assigned_name(&format!("{name}=")).is_some()
}

/// Returns whether a string runs a command if it is evaluated as arithmetic: `a[$(…)]`.
pub(crate) fn evaluates(text: &str) -> bool {
    text.contains('[') && (text.contains("$(") || text.contains('`'))
}

/// Returns the name that a word assigns to: `x=1`, `a[0]=1`, `x+=1`.
pub(crate) fn assigned_name(raw: &str) -> Option<String> {
    let equals = raw.find('=')?;
    let left = raw[..equals].strip_suffix('+').unwrap_or(&raw[..equals]);
    let name = left.split('[').next().unwrap_or(left);
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && (left.len() == name.len() || left.ends_with(']'));
    plain.then(|| name.to_owned())
}

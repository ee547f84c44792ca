//! Recognizes special forms of words: names in assignments, descriptors, and strings that run a command when evaluated
//! as arithmetic.

/// Returns whether a word has the form `{name}`, which may precede a redirect.
pub(crate) fn is_descriptor_name(raw: &str) -> bool {
    let name = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
    assigned_name(&format!("{name}=")).is_some()
}

/// Returns whether evaluating a string as arithmetic would run a command, as in `a[$(…)]`.
pub(crate) fn evaluates(text: &str) -> bool {
    text.contains('[') && (text.contains("$(") || text.contains('`'))
}

/// Returns the name to which a word assigns a value, as in `x=1`, `a[0]=1` and `x+=1`.
pub(crate) fn assigned_name(raw: &str) -> Option<String> {
    let equals = raw.find('=')?;
    let left = raw[..equals].strip_suffix('+').unwrap_or(&raw[..equals]);
    let name = left.split('[').next().unwrap_or(left);
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && (left.len() == name.len() || left.ends_with(']'));
    plain.then(|| name.to_owned())
}

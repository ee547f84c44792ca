//! Locale settings for text.

/// The encoding that programs here take text to be in: `UTF-8`, `EUC-JP`. None where the locale names none.
pub fn charset() -> Option<String> {
    // The first that is set decides, also where it names no encoding.
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.as_deref().and_then(charset_of).map(ToOwned::to_owned)
}

/// `ja_JP.EUC-JP@modifier`
fn charset_of(locale: &str) -> Option<&str> {
    let (_, after) = locale.split_once('.')?;
    let charset = after.split('@').next().unwrap_or_default();
    (!charset.is_empty()).then_some(charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_stands_between_a_dot_and_a_modifier() {
        let cases = [
            ("de_DE.UTF-8", Some("UTF-8")),
            ("ja_JP.eucJP", Some("eucJP")),
            ("de_DE.ISO-8859-15@euro", Some("ISO-8859-15")),
            ("de_DE@euro", None),
            ("C", None),
            ("C.", None),
        ];
        for (locale, charset) in cases {
            assert_eq!(charset_of(locale), charset, "{locale}");
        }
    }
}

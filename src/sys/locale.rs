//! Locale settings that affect text.

/// Returns the locale's encoding, such as `UTF-8` or `EUC-JP`, or `None` if the locale does not specify one.
pub(crate) fn charset() -> Option<String> {
    // The first variable that is set determines the locale, even if it names no encoding.
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    set.as_deref().and_then(charset_of).map(ToOwned::to_owned)
}

/// Extracts the encoding from a locale name such as `ja_JP.EUC-JP@modifier`.
fn charset_of(locale: &str) -> Option<&str> {
    let (_, after) = locale.split_once('.')?;
    let charset = after.split('@').next().unwrap_or_default();
    (!charset.is_empty()).then_some(charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_locale_is_between_the_dot_and_the_modifier() {
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

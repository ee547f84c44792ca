//! Policy file: a bundle whose rules agree with their examples.

use super::bundle::{Bundle, BundleEntry, BundleError};
use super::rule_examples::check_examples;

const DEFAULT: &str = include_str!("../../assets/policy/default.toml");

impl Bundle {
    /// Parses a bundle; `name` is the name of the file in errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, BundleError> {
        let bundle = Self::parse_unchecked(text, name)?;
        check_examples(&bundle, name)?;
        Ok(bundle)
    }

    /// Parses a file that may contain only rules: the rules that a user saved for one project.
    pub fn parse_rules(text: &str, name: &str) -> Result<Self, BundleError> {
        let bundle = Self::parse(text, name)?;
        let rules = |stated: &&BundleEntry| match stated.section.as_str() {
            "" => matches!(stated.key.as_str(), "schema_version" | "bundle_version"),
            "capabilities.\"Shell.Exec\"" if stated.key == "readable_paths" => true,
            section => section.starts_with("capabilities.") && stated.key == "rules",
        };
        match bundle.stated.iter().find(|stated| !rules(stated)) {
            None => Ok(bundle),
            Some(stated) => {
                let message = format!("`{}` is not allowed here: this file may contain only rules", stated.key);
                Err(BundleError { name: name.to_owned(), line: Some(stated.line), message })
            }
        }
    }

    /// Parses the bytes of a file, which need not be UTF-8.
    pub fn parse_bytes(bytes: &[u8], name: &str) -> Result<Self, BundleError> {
        Self::parse(text_of(bytes, name)?, name)
    }

    /// Parses the bytes of a file that may contain only rules.
    pub fn parse_rules_bytes(bytes: &[u8], name: &str) -> Result<Self, BundleError> {
        Self::parse_rules(text_of(bytes, name)?, name)
    }

    /// Returns the text of the built-in policy, which applies if there is no policy file.
    pub fn built_in_text() -> &'static str {
        DEFAULT
    }

    /// Returns the built-in policy, which applies if there is no policy file.
    pub fn built_in() -> Result<Self, BundleError> {
        Self::parse(DEFAULT, "the built-in policy")
    }
}

fn text_of<'a>(bytes: &'a [u8], name: &str) -> Result<&'a str, BundleError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
            let message = format!("byte 0x{:02x} is not valid UTF-8; expected a TOML file", bytes[error.valid_up_to()]);
            Err(BundleError { name: name.to_owned(), line: Some(line), message })
        }
    }
}

//! Gemini model versions, from which capabilities are derived.

/// Generation of a Gemini model, parsed from its name. Unrecognized names are treated as an older generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Version {
    pub major: u32,
    pub minor: u32,
    /// Whether this is the large model of its generation, whose thinking cannot be turned off.
    pub pro: bool,
}

impl Version {
    /// Parses a model name, such as `gemini-2.5-flash` or `models/gemini-3-pro-preview`.
    pub(crate) fn parse(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let pro = name.split('-').any(|word| word == "pro");
        let number = name.strip_prefix("gemini-").and_then(|rest| rest.split('-').next()).unwrap_or_default();
        let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
        Self { major: major.parse().unwrap_or(0), minor: minor.parse().unwrap_or(0), pro }
    }

    /// Returns whether the model is of the third generation or later. These models require signed calls, accept images
    /// in tool results, and use an effort level rather than a number of tokens.
    pub(crate) fn is_third(self) -> bool {
        self.major >= 3
    }
}

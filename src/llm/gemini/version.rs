//! Gemini versions: the capabilities that follow from a model's name.

/// The generation of a Gemini model; what has another name takes what the older ones take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    /// The large one of its generation, which cannot be kept from thinking.
    pub pro: bool,
}

impl Version {
    /// `gemini-2.5-flash`, `models/gemini-3-pro-preview`.
    pub fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
        let pro = name.split('-').any(|word| word == "pro");
        let number = name.strip_prefix("gemini-").and_then(|rest| rest.split('-').next()).unwrap_or_default();
        let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
        Self { major: major.parse().unwrap_or(0), minor: minor.parse().unwrap_or(0), pro }
    }

    /// Since the third: a call must be signed, results carry images, and effort is a level instead of a number of tokens.
    pub fn is_third(self) -> bool {
        self.major >= 3
    }
}

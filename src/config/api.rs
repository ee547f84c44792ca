//! APIs of providers.

use super::schema;

/// The API that a server implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiSetting {
    Anthropic,
    OpenAiResponses,
    OpenAiChat,
    Gemini,
}

impl ApiSetting {
    /// Returns the API with this name in the settings.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let apis = [Self::Anthropic, Self::OpenAiResponses, Self::OpenAiChat, Self::Gemini];
        schema::APIS.iter().zip(apis).find(|(known, _)| **known == name).map(|(_, api)| api)
    }
}

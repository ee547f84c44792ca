//! Model provider APIs.

use super::schema;

/// API that a model provider's server implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiSetting {
    Anthropic,
    OpenAiResponses,
    OpenAiChat,
    Gemini,
}

impl ApiSetting {
    /// Returns the API that has this name in the settings.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let apis = [Self::Anthropic, Self::OpenAiResponses, Self::OpenAiChat, Self::Gemini];
        schema::APIS.iter().zip(apis).find(|(known, _)| **known == name).map(|(_, api)| api)
    }
}

//! Arguments of `EditFile` and its aliases.

use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::tools) struct EditArguments {
    pub(super) path: String,
    pub(super) edits: Vec<Edit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Edit {
    pub(super) old_text: String,
    pub(super) new_text: String,
    pub(super) replace_all: Option<bool>,
}

//! Configuration from files and the environment: settings, credentials, saved rules and trust.

mod address;
mod agents;
mod api;
mod credentials;
mod default_model;
mod directories;
mod edit;
mod environment;
mod error;
mod file;
pub(crate) mod grants;
mod hook_pins;
mod instructions;
mod key_command;
mod model_roles;
mod no_model;
mod plugin_pins;
mod policy_service;
mod profile;
mod project_layer;
mod provider;
mod provider_headers;
mod retention;
mod schema;
mod screen;
mod search;
pub(crate) mod servers;
mod service;
mod services;
mod settings;
mod spending;
mod theme;
pub(crate) mod trust;
mod workspace_store;

pub(crate) use address::{check_list_url, check_tool_service_url};
pub(crate) use agents::AgentSettings;
pub(crate) use api::ApiSetting;
pub(crate) use credentials::{Credentials, KeyStorage, KeyringFailure, server_key};
pub(crate) use default_model::{EditResult, with_default_model};
pub(crate) use directories::Directories;
pub(crate) use edit::{NewValue, with_values};
pub(crate) use environment::{ApiKey, Environment};
pub(crate) use error::ConfigError;
pub(crate) use hook_pins::HookPins;
pub(crate) use instructions::{
    FILE_BYTES as INSTRUCTION_BYTES, InstructionFile, PUNCTUATION as PATH_PUNCTUATION, imports as instruction_imports,
    is_instruction_file, on_the_way as instructions_on_the_way, personal_instructions, project_instruction_file,
    user_instructions as instructions_of_person,
};
pub(crate) use key_command::KeyCommand;
pub(crate) use no_model::NoModel;
pub(crate) use plugin_pins::{FilePin, PluginPin, digest as plugin_digest, remove_incomplete as remove_incomplete_pins};
pub(crate) use policy_service::PolicyService;
pub(crate) use project_layer::ProjectLayer;
pub(crate) use provider::{KeyPlace, ProviderModel, provider_variables};
pub(crate) use retention::Retention;
pub(crate) use schema::{json_schema, key_list};
pub(crate) use screen::NotificationSetting;
pub(crate) use search::{SearchChoice, SearchService, SearchSettings, search_key_variables, services_with_key};
pub(crate) use service::{ModelService, bedrock_url};
pub(crate) use services::{
    ApprovalServiceSettings, AuditSettings, OtlpEndpoint, SecretReference, ServiceSettings, SessionServiceSettings,
    TelemetrySettings, check_service_url,
};
pub(crate) use settings::{ApprovalSettings, Settings, ToolLists};
pub(crate) use spending::{SetEffort, SetLimit};
pub(crate) use theme::with_theme;
pub(crate) use workspace_store::{StoreKind, WorkspaceStore};

/// Validates the text of a `config.toml` file.
pub(crate) fn check_settings(text: &str) -> Result<(), ConfigError> {
    Settings::from_values(file::parse(text, std::path::Path::new("config.toml"))?, &[]).map(drop)
}

/// Parses a configuration file, lets aye write a value to it, and parses the result. Used by `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn check_settings_text(text: &str) -> Result<(), String> {
    let read = |text: &str| {
        let values = file::parse(text, std::path::Path::new("config.toml"))?;
        Settings::from_values(values, &[])
    };
    read(text).map_err(|error| error.to_string())?;
    if let EditResult::New(edited) = with_default_model(text, "acme/one").map_err(|error| error.to_string())? {
        read(&edited).map_err(|error| format!("after a change: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! Configuration: settings, credentials, saved rules and trust, from files and the environment.

mod address;
mod credentials;
mod default_model;
mod directories;
mod edit;
mod environment;
mod error;
mod file;
pub mod grants;
mod instructions;
mod project_layer;
mod provider;
mod retention;
mod schema;
mod screen;
pub mod servers;
mod settings;
mod spending;
mod theme;
pub mod trust;

pub use credentials::{Credentials, KeyStorage, NotKept, server_key};
pub use default_model::{Edited, with_default_model};
pub use directories::Directories;
pub use edit::{NewValue, with_values};
pub use environment::{Environment, Secret};
pub use error::ConfigError;
pub use instructions::{InstructionFile, of_person as instructions_of_person, on_the_way as instructions_on_the_way};
pub use project_layer::ProjectLayer;
pub use provider::{Api, KeyPlace, ModelChoice, NoModel, provider_variables};
pub use retention::Retention;
pub use schema::schema;
pub use screen::Notifications;
pub use settings::{Settings, TextTools, ToolLists};
pub use theme::with_theme;

/// Reads a configuration file, and the same file after aye has written a value into it, for `fuzz/`.
#[cfg(feature = "fuzzing")]
pub fn settings_in(text: &str) -> Result<(), String> {
    let read = |text: &str| {
        let values = file::parse(text, std::path::Path::new("config.toml"))?;
        Settings::from_values(values, &[])
    };
    read(text).map_err(|error| error.to_string())?;
    if let Edited::New(edited) = with_default_model(text, "acme/one").map_err(|error| error.to_string())? {
        read(&edited).map_err(|error| format!("after a change: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

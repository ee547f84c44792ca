//! Files, environment and their order; what a person set.

mod address;
mod credentials;
mod directories;
mod document;
mod environment;
mod error;
pub mod grants;
mod instructions;
mod keys;
mod local;
mod provider;
mod settings;
mod spending;
pub mod trust;

pub use credentials::{Credentials, Kept, NotKept};
pub use directories::Directories;
pub use environment::{Environment, Secret};
pub use error::ConfigError;
pub use instructions::{InstructionFile, of_person as instructions_of_person, on_the_way as instructions_on_the_way};
pub use keys::schema;
pub use provider::{Api, KeyPlace, ModelChoice, NoModel};
pub use settings::{Settings, TextTools, ToolLists};

#[cfg(test)]
mod tests;

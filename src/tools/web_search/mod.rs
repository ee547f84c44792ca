//! Web searches that the model makes: the tool, the session's search, and the services that can be configured.

mod brave;
mod endpoint;
mod report;
mod searxng;
mod service;
mod service_request;
mod tavily;
#[cfg(test)]
mod tests;
pub(in crate::tools) mod tool;

pub(crate) use endpoint::{Endpoint, SearchKey};
pub(crate) use service::ServiceKind;

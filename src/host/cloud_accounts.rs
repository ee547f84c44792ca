//! Determines how to access the services of cloud platforms: the URL, and the account that authenticates requests.

use super::context::AppContext;
use crate::cloud::{CloudEnvironment, aws, google};
use crate::config::{ApiKey, ConfigError, KeyPlace, ModelService, NoModel, ProviderModel, bedrock_url};
use crate::llm;
use crate::protocol::Problem;
use std::sync::Arc;

/// Access to a provider: its service, URL and account.
pub(crate) struct ServiceAccess {
    pub service: llm::Service,
    pub base_url: String,
    /// Account that authenticates requests. Absent if requests are authenticated with a key, or not at all.
    pub account: Option<llm::CloudAccount>,
}

/// Returns how to access the provider of a model. Reads the AWS profile only if the region cannot be determined
/// otherwise.
pub(crate) fn access(app: &AppContext, choice: &ProviderModel) -> Result<ServiceAccess, NoModel> {
    let base_url = choice.base_url.clone();
    let has_account = choice.key_place == KeyPlace::Account;
    Ok(match &choice.service {
        ModelService::Direct => ServiceAccess { service: llm::Service::Direct, base_url, account: None },
        ModelService::Azure { api_version } => {
            ServiceAccess { service: llm::Service::Azure { version: api_version.clone() }, base_url, account: None }
        }
        ModelService::Vertex { project, location } => {
            let service = llm::Service::Vertex { project: project.clone(), location: location.clone() };
            let account = has_account.then(|| google::GoogleAccount::new(surroundings(app, google::VARIABLES)));
            ServiceAccess { service, base_url, account: account.map(|account| llm::CloudAccount::Google(Arc::new(account))) }
        }
        ModelService::Bedrock { region, profile } => {
            let surroundings = surroundings(app, aws::VARIABLES);
            let region = match region {
                Some(region) => region.clone(),
                None => region_of_profile(&surroundings, &choice.provider, profile.as_deref())?,
            };
            let base_url = if base_url.is_empty() { bedrock_url(&region) } else { base_url };
            let account = has_account.then(|| aws::AwsAccount::new(surroundings, profile.clone(), region));
            let account = account.map(|account| llm::CloudAccount::Aws(Arc::new(account)));
            ServiceAccess { service: llm::Service::Bedrock, base_url, account }
        }
    })
}

fn region_of_profile(surroundings: &CloudEnvironment, provider: &str, profile: Option<&str>) -> Result<String, NoModel> {
    let region = aws::region_of_profile(surroundings, profile).map_err(ConfigError::single)?;
    region.ok_or_else(|| {
        let problem = Problem::new(format!("no AWS region for `{provider}`"));
        NoModel::NoKey(problem.hint(format!("set AWS_REGION, or `providers.{provider}.region` in config.toml")))
    })
}

fn surroundings(app: &AppContext, names: &[&str]) -> CloudEnvironment {
    let variables = app.environment.variables().filter(|(name, _)| names.contains(name));
    let credentials = app.credentials.clone();
    CloudEnvironment {
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        home: app.home.clone(),
        roots: app.roots.clone(),
        learn: Arc::new(move |secret| credentials.remember(ApiKey::new(secret))),
    }
}

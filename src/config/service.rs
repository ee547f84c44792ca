//! Cloud platform services: `[providers.NAME] service`, and its project, location or region.

use super::api::ApiSetting;
use super::no_model::NoModel;
use super::schema::SERVICES;
use super::{ConfigError, Environment, Settings, address};
use crate::protocol::Problem;

/// Service through which a provider's models are accessed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ModelService {
    /// The API of the model's vendor, or a compatible server.
    #[default]
    Direct,
    /// Azure OpenAI. `api_version` is absent for the v1 API.
    Azure { api_version: Option<String> },
    /// Vertex AI on Google Cloud.
    Vertex { project: String, location: String },
    /// Amazon Bedrock. `region` is absent if an AWS profile sets it. `profile` is the AWS profile named in the
    /// settings.
    Bedrock { region: Option<String>, profile: Option<String> },
}

/// Cloud service whose settings have not been read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceName {
    Azure,
    Vertex,
    Bedrock,
}

impl ServiceName {
    /// Returns a provider's service: the one given in the settings, or otherwise the one with the same name as the
    /// provider.
    pub(super) fn for_provider(settings: &Settings, provider: &str) -> Option<Self> {
        let name = settings.text(&["providers", provider, "service"]).unwrap_or(provider);
        let kinds = [Self::Azure, Self::Vertex, Self::Bedrock];
        SERVICES.iter().zip(kinds).find(|(known, _)| **known == name).map(|(_, kind)| kind)
    }

    /// Returns the environment variables that may contain an API key or token for the service.
    pub(super) fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::Azure => &["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_AD_TOKEN"],
            Self::Vertex => &[],
            Self::Bedrock => &["AWS_BEARER_TOKEN_BEDROCK"],
        }
    }

    /// Returns the API that is used for a model by default.
    pub(super) fn api_for(self, model: &str) -> ApiSetting {
        match self {
            Self::Azure => ApiSetting::OpenAiResponses,
            Self::Vertex if model.starts_with("claude") => ApiSetting::Anthropic,
            Self::Vertex => ApiSetting::Gemini,
            Self::Bedrock => ApiSetting::Anthropic,
        }
    }

    /// Returns whether requests can be authenticated with a cloud account instead of a key.
    pub(super) fn has_account(self) -> bool {
        matches!(self, Self::Vertex | Self::Bedrock)
    }

    /// Reads the service's settings, and the environment variables of its platform.
    pub(super) fn read(self, settings: &Settings, provider: &str, environment: &Environment) -> Result<ModelService, NoModel> {
        let setting = |key: &str, variables: &[&str]| {
            let set = settings.text(&["providers", provider, key]).map(str::to_owned);
            set.or_else(|| variables.iter().find_map(|name| environment.get(name)).map(str::to_owned))
        };
        match self {
            Self::Azure => Ok(ModelService::Azure { api_version: setting("api_version", &[]) }),
            Self::Vertex => {
                let Some(project) = setting("project", &["GOOGLE_CLOUD_PROJECT"]) else {
                    let problem = Problem::new(format!("no Google Cloud project for `{provider}`"));
                    let problem =
                        problem.hint(format!("set GOOGLE_CLOUD_PROJECT, or `providers.{provider}.project` in config.toml"));
                    return Err(NoModel::NoKey(problem));
                };
                let location = setting("location", &["GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"]);
                let location = location.unwrap_or_else(|| "global".to_owned());
                is_name(&location).then_some(()).ok_or_else(|| invalid_value(provider, "location", &location))?;
                Ok(ModelService::Vertex { project, location })
            }
            Self::Bedrock => {
                let region = setting("region", &["AWS_REGION", "AWS_DEFAULT_REGION"]);
                if let Some(region) = region.as_ref().filter(|region| !is_name(region)) {
                    return Err(invalid_value(provider, "region", region).into());
                }
                Ok(ModelService::Bedrock { region, profile: setting("profile", &[]) })
            }
        }
    }

    /// Returns the service's default base URL.
    pub(super) fn base_url(self, service: &ModelService, provider: &str, environment: &Environment) -> Result<String, NoModel> {
        let from = |variable: &str| {
            let given = environment.get(variable)?;
            Some(address::check(given).map_err(|problem| NoModel::Wrong(ConfigError::single(problem.with_location(variable)))))
        };
        match (self, service) {
            (Self::Azure, _) => from("AZURE_OPENAI_ENDPOINT").unwrap_or_else(|| {
                let problem = Problem::new(format!("no URL for `{provider}`"));
                let example = "https://NAME.openai.azure.com";
                let hint =
                    format!("set AZURE_OPENAI_ENDPOINT, or `providers.{provider}.base_url` in config.toml, to `{example}`");
                Err(NoModel::NoKey(problem.hint(hint)))
            }),
            (_, ModelService::Vertex { location, .. }) => Ok(match location.as_str() {
                "global" => "https://aiplatform.googleapis.com".to_owned(),
                "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
                region => format!("https://{region}-aiplatform.googleapis.com"),
            }),
            (_, ModelService::Bedrock { region, .. }) => {
                let given = from("AWS_ENDPOINT_URL_BEDROCK_RUNTIME").or_else(|| from("AWS_ENDPOINT_URL"));
                // If the region is unknown here, it comes from a profile, which is read later.
                given.unwrap_or_else(|| Ok(region.as_deref().map(bedrock_url).unwrap_or_default()))
            }
            (_, ModelService::Direct | ModelService::Azure { .. }) => Ok(String::new()),
        }
    }
}

/// Returns the Bedrock endpoint URL for a region.
pub(crate) fn bedrock_url(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("https://bedrock-runtime.{region}.{domain}")
}

/// Returns whether a string can be used as part of a host name.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with('-') && !text.ends_with('-')
}

fn invalid_value(provider: &str, key: &str, value: &str) -> ConfigError {
    let problem = Problem::new(format!("invalid {key} `{value}` for `{provider}`"));
    ConfigError::single(problem.because("expected lower-case letters, digits and `-`, such as `europe-west1`"))
}

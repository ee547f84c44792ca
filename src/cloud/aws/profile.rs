//! Parsing of the files `~/.aws/config` and `~/.aws/credentials`.

use crate::cloud::{CloudEnvironment, read};
use crate::protocol::Problem;
use std::collections::BTreeMap;

const DEFAULT: &str = "default";

/// Sections of a file by name, each with its keys and values.
type Sections = BTreeMap<String, BTreeMap<String, String>>;

/// Profile, with its keys from both files combined.
#[derive(Debug)]
pub(super) struct AwsProfile {
    pub name: String,
    keys: BTreeMap<String, String>,
    /// All sections of the config file.
    sections: Sections,
}

impl AwsProfile {
    /// Reads the named profile, the one that `AWS_PROFILE` names, or the default profile, in this order of precedence.
    /// Returns `None` if no profile is named and there is no default profile.
    pub(super) fn read(surroundings: &CloudEnvironment, named: Option<&str>) -> Result<Option<Self>, Problem> {
        let named = named.or_else(|| surroundings.variable("AWS_PROFILE"));
        let name = named.unwrap_or(DEFAULT);
        let config = surroundings.path("AWS_CONFIG_FILE", ".aws/config");
        let shared = surroundings.path("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
        let sections = parse(&read(&config)?.unwrap_or_default());
        let secrets = parse(&read(&shared)?.unwrap_or_default());
        let section = sections.get(&format!("profile {name}")).or_else(|| sections.get(DEFAULT).filter(|_| name == DEFAULT));
        let both: Vec<&BTreeMap<String, String>> = section.into_iter().chain(secrets.get(name)).collect();
        if both.is_empty() {
            let Some(name) = named else { return Ok(None) };
            let problem = Problem::new(format!("no AWS profile `{name}`"));
            let problem = problem.because(format!("neither `{}` nor `{}` has it", config.display(), shared.display()));
            return Err(problem.hint("run `aws configure list-profiles` to list the profiles"));
        }
        let keys = both.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(Some(Self { name: name.to_owned(), keys, sections }))
    }

    /// Returns the value of a key in another section of the config file.
    pub(super) fn section_value(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.get(key).map(String::as_str)
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Parses a file. Unrecognized lines are ignored, as the AWS tools do. An indented line belongs to the key above it.
fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut current: Option<String> = None;
    for line in text.lines() {
        let is_nested = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) || is_nested {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.split(']').next().unwrap_or_default();
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            sections.entry(name.clone()).or_default();
            current = Some(name);
        } else if let (Some(name), Some((key, value))) = (&current, line.split_once('=')) {
            let value = [" #", " ;", "\t#", "\t;"].iter().fold(value, |value, mark| value.split(mark).next().unwrap_or_default());
            let section = sections.entry(name.clone()).or_default();
            section.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_parsed_as_by_the_aws_cli() {
        let sections = parse(
            "# comment\nstray = 1\n[default]\nregion=eu-west-1 # near\naws_access_key_id = A\n\n[profile  work]\nsso_session = corp\n\
             s3 =\n  max_concurrent_requests = 20\nRegion = us-west-2\n[sso-session corp]\nsso_start_url = https://x.awsapps.com/start#/\n",
        );
        let value = |section: &str, key: &str| sections[section].get(key).map(String::as_str);
        assert_eq!(value("default", "region"), Some("eu-west-1"));
        assert_eq!(value("profile work", "region"), Some("us-west-2"));
        assert_eq!(value("profile work", "s3"), Some(""));
        assert_eq!(value("profile work", "max_concurrent_requests"), None);
        assert_eq!(value("sso-session corp", "sso_start_url"), Some("https://x.awsapps.com/start#/"));
    }
}

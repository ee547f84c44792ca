//! Exporter settings, taken from the configured address and the standard `OTEL_*` variables.

use crate::config::{Environment, OtlpEndpoint, check_service_url};
use crate::sys::http::Headers;
use std::time::Duration;

/// Request timeout if no variable sets one.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Kind of telemetry data, each of which has a URL path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Signal {
    Logs,
    Traces,
    Metrics,
}

impl Signal {
    fn path(self) -> &'static str {
        match self {
            Self::Logs => "/v1/logs",
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::Logs => "LOGS",
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }
}

/// Settings for sending one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExportSettings {
    /// Complete URL, including the signal's path.
    pub url: String,
    pub headers: Headers,
    pub timeout: Duration,
    pub is_json: bool,
    pub is_gzip: bool,
}

impl ExportSettings {
    /// Returns whether an address for this signal is configured.
    pub(super) fn has_address(endpoint: &OtlpEndpoint, signal: Signal, environment: &Environment) -> bool {
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.variable());
        let is_set = |name: &str| environment.get(name).is_some();
        matches!(endpoint, OtlpEndpoint::Url(_)) || is_set(&own) || is_set("OTEL_EXPORTER_OTLP_ENDPOINT")
    }

    /// Reads the settings. Returns the reason if a variable is invalid.
    pub(super) fn read(endpoint: &OtlpEndpoint, signal: Signal, environment: &Environment) -> Result<Self, String> {
        let own = |name: &str| environment.get(&format!("OTEL_EXPORTER_OTLP_{}_{name}", signal.variable()));
        let any = |name: &str| own(name).or_else(|| environment.get(&format!("OTEL_EXPORTER_OTLP_{name}")));
        let checked = |given: &str| check_service_url(given).map_err(|problem| problem.one_line());
        let url = match endpoint {
            OtlpEndpoint::Url(url) => format!("{url}{}", signal.path()),
            OtlpEndpoint::Environment => match (own("ENDPOINT"), environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")) {
                // An address for a single signal is a complete URL.
                (Some(url), _) => checked(url)?,
                (None, Some(base)) => format!("{}{}", checked(base)?, signal.path()),
                (None, None) => return Err("`OTEL_EXPORTER_OTLP_ENDPOINT` is not set".to_owned()),
            },
        };
        let is_json = match any("PROTOCOL") {
            None | Some("http/protobuf") => false,
            Some("http/json") => true,
            Some(other) => {
                return Err(format!("`OTEL_EXPORTER_OTLP_PROTOCOL` is `{other}`; aye supports `http/protobuf` and `http/json`"));
            }
        };
        let is_gzip = match any("COMPRESSION") {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(other) => return Err(format!("`OTEL_EXPORTER_OTLP_COMPRESSION` is `{other}`; aye supports `gzip` and `none`")),
        };
        let timeout = match any("TIMEOUT") {
            None => TIMEOUT,
            Some(text) => {
                let ms = text.parse().ok().filter(|ms| (1..=600_000).contains(ms));
                Duration::from_millis(ms.ok_or("`OTEL_EXPORTER_OTLP_TIMEOUT` is not a number of milliseconds up to 600000")?)
            }
        };
        let headers = any("HEADERS").map(pairs).unwrap_or_default();
        let headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase().into(), value)).collect();
        Ok(Self { url, headers, timeout, is_json, is_gzip })
    }
}

/// Returns the resource attributes: first those from the standard variables, then those that aye adds.
pub(super) fn resource_attributes(environment: &Environment) -> Vec<(String, String)> {
    let mut attributes = environment.get("OTEL_RESOURCE_ATTRIBUTES").map(pairs).unwrap_or_default();
    let service = environment.get("OTEL_SERVICE_NAME").map(str::to_owned);
    let named = attributes.iter().position(|(name, _)| name == "service.name").map(|at| attributes.remove(at).1);
    attributes.retain(|(name, _)| name != "service.name" && name != "service.version");
    attributes.push(("service.name".to_owned(), service.or(named).unwrap_or_else(|| "aye".to_owned())));
    attributes.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
    attributes
}

/// Parses a list in the form `name=value,name=value`, in which values are percent-encoded.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        // Form decoding converts `+` to a space, but this format does not.
        let form = format!("v={}", value.trim().replace('+', "%2B").replace('&', "%26"));
        let value = url::form_urlencoded::parse(form.as_bytes()).next()?.1.into_owned();
        Some((name.trim().to_owned(), value)).filter(|(name, _)| !name.is_empty())
    };
    text.split(',').filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let name = |name: &str| format!("OTEL_EXPORTER_OTLP_{name}");
        Environment::from_pairs(pairs.iter().map(|(key, value)| (name(key), (*value).to_owned())))
    }

    #[test]
    fn standard_otel_variables_apply_to_each_signal() {
        let variables = [
            ("ENDPOINT", "https://all.example:4318/base/"),
            ("TRACES_ENDPOINT", "https://traces.example/ingest"),
            ("HEADERS", "api-key=a%20b+c, X-Other = 1"),
            ("LOGS_HEADERS", "api-key=logs"),
            ("PROTOCOL", "http/json"),
            ("METRICS_PROTOCOL", "http/protobuf"),
            ("COMPRESSION", "gzip"),
            ("LOGS_TIMEOUT", "1500"),
        ];
        let read = |signal| ExportSettings::read(&OtlpEndpoint::Environment, signal, &environment(&variables)).unwrap();
        let logs = read(Signal::Logs);
        assert_eq!(logs.url, "https://all.example:4318/base/v1/logs");
        assert_eq!(logs.headers, [("api-key".into(), "logs".to_owned())]);
        assert_eq!((logs.timeout, logs.is_json, logs.is_gzip), (Duration::from_millis(1500), true, true));
        let traces = read(Signal::Traces);
        assert_eq!(traces.url, "https://traces.example/ingest");
        assert_eq!(traces.headers, [("api-key".into(), "a b+c".to_owned()), ("x-other".into(), "1".to_owned())]);
        assert!(!read(Signal::Metrics).is_json);
        let own = OtlpEndpoint::Url("http://127.0.0.1:4318".to_owned());
        assert_eq!(
            ExportSettings::read(&own, Signal::Metrics, &environment(&[])).unwrap().url,
            "http://127.0.0.1:4318/v1/metrics"
        );
    }

    #[test]
    fn errors_name_the_invalid_variable() {
        for (variables, expected) in [
            (&[][..], "`OTEL_EXPORTER_OTLP_ENDPOINT` is not set"),
            (&[("ENDPOINT", "http://far.example")], "unencrypted"),
            (&[("ENDPOINT", "https://a.example"), ("PROTOCOL", "grpc")], "`grpc`"),
            (&[("ENDPOINT", "https://a.example"), ("COMPRESSION", "zstd")], "`zstd`"),
            (&[("ENDPOINT", "https://a.example"), ("TIMEOUT", "soon")], "TIMEOUT"),
        ] {
            let error = ExportSettings::read(&OtlpEndpoint::Environment, Signal::Logs, &environment(variables)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_resource_names_the_service() {
        let of = |pairs: &[(&str, &str)]| {
            resource_attributes(&Environment::from_pairs(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))))
        };
        assert_eq!(of(&[])[0], ("service.name".to_owned(), "aye".to_owned()));
        let named = of(&[("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=a%2Cb")]);
        assert_eq!(named[..2], [("team".to_owned(), "a,b".to_owned()), ("service.name".to_owned(), "mine".to_owned())]);
        assert_eq!(of(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=y")])[0].1, "x");
    }
}

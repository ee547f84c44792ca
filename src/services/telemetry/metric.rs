//! Model request metrics: token counts and durations, reported as histograms with delta temporality.

use crate::services::otlp::{Attributes, nanos};
use serde_json::{Value, json};

/// Bucket bounds for token counts, as recommended by the conventions.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECOND_BOUNDS: [f64; 14] = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Aggregation temporality of values that are counted since the previous report.
const DELTA: u8 = 1;

/// Details of a model request.
pub(super) struct RequestFacts<'a> {
    pub provider: &'a str,
    pub model: &'a str,
    pub start: jiff::Timestamp,
    pub end: jiff::Timestamp,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub seconds: f64,
}

/// Returns the metrics for a single request.
pub(super) fn metrics(request: &RequestFacts<'_>) -> [Value; 2] {
    let tokens = [
        point(request, Some("input"), request.input_tokens as f64, &TOKEN_BOUNDS),
        point(request, Some("output"), request.output_tokens as f64, &TOKEN_BOUNDS),
    ];
    let duration = [point(request, None, request.seconds, &SECOND_BOUNDS)];
    [
        metric("gen_ai.client.token.usage", "Number of input and output tokens used", "{token}", &tokens),
        metric("gen_ai.client.operation.duration", "Duration of requests to models", "s", &duration),
    ]
}

fn metric(name: &str, description: &str, unit: &str, points: &[Value]) -> Value {
    json!({
        "name": name, "description": description, "unit": unit,
        "histogram": {"dataPoints": points, "aggregationTemporality": DELTA},
    })
}

fn point(request: &RequestFacts<'_>, token_type: Option<&str>, value: f64, bounds: &[f64]) -> Value {
    let mut attributes = Attributes::default();
    attributes.text("gen_ai.operation.name", Some("chat"));
    attributes.text("gen_ai.provider.name", Some(request.provider).filter(|name| !name.is_empty()));
    attributes.text("gen_ai.request.model", Some(request.model));
    attributes.text("gen_ai.token.type", token_type);
    let bucket = bounds.iter().take_while(|bound| value > **bound).count();
    let counts: Vec<&str> = (0..=bounds.len()).map(|index| if index == bucket { "1" } else { "0" }).collect();
    json!({
        "startTimeUnixNano": nanos(request.start), "timeUnixNano": nanos(request.end), "count": "1", "sum": value,
        "bucketCounts": counts, "explicitBounds": bounds, "attributes": attributes.into_value(),
    })
}

/// Merges metrics with the same name into a single metric that contains all their data points.
pub(super) fn merge(metrics: Vec<Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for mut metric in metrics {
        match merged.iter_mut().find(|other| other["name"] == metric["name"]) {
            Some(other) => {
                let points = metric["histogram"]["dataPoints"].take();
                if let (Some(all), Value::Array(points)) = (other["histogram"]["dataPoints"].as_array_mut(), points) {
                    all.extend(points);
                }
            }
            None => merged.push(metric),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_in_the_bucket_of_its_value() {
        let time = jiff::Timestamp::from_second(5).unwrap();
        let request = RequestFacts {
            provider: "anthropic",
            model: "m",
            start: time,
            end: time,
            input_tokens: 4,
            output_tokens: 100_000_000,
            seconds: 1.0,
        };
        let [tokens, duration] = metrics(&request);
        let counts = |metric: &Value, point: usize| {
            let counts = metric["histogram"]["dataPoints"][point]["bucketCounts"].as_array().unwrap();
            assert_eq!(counts.len(), 15);
            counts.iter().position(|count| count == "1").unwrap()
        };
        assert_eq!((counts(&tokens, 0), counts(&tokens, 1), counts(&duration, 0)), (1, 14, 7));
        let merged = merge(vec![tokens.clone(), duration, tokens]);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0]["histogram"]["dataPoints"].as_array().unwrap().len(), 4);
    }
}

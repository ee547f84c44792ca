//! Conversion of OTLP messages from JSON to protobuf, using a table of the fields that aye sends.

use serde_json::Value;

/// Protobuf type of a field.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// Bytes, represented as hexadecimal digits in JSON.
    Hex,
    Bool,
    /// Unsigned or enumerated number, encoded as a varint.
    Varint,
    /// Signed number, encoded as a varint of its two's complement.
    Int,
    /// Fixed-length 64-bit number.
    Fixed64,
    Double,
    /// Packed sequence of fixed-length 64-bit numbers.
    PackedFixed64,
    PackedDouble,
    Message(&'static Schema),
}

/// Fields of a message, each with its JSON name, field number and type.
struct Schema(&'static [(&'static str, u32, Kind)]);

macro_rules! schema {
    ($name:ident: $(($field:literal, $number:literal, $kind:expr)),* $(,)?) => {
        static $name: Schema = Schema(&[$(($field, $number, $kind)),*]);
    };
}

schema!(ANY_VALUE:
    ("stringValue", 1, Kind::Text), ("boolValue", 2, Kind::Bool), ("intValue", 3, Kind::Int), ("doubleValue", 4, Kind::Double),
    ("arrayValue", 5, Kind::Message(&ARRAY)));
schema!(ARRAY: ("values", 1, Kind::Message(&ANY_VALUE)));
schema!(KEY_VALUE: ("key", 1, Kind::Text), ("value", 2, Kind::Message(&ANY_VALUE)));
schema!(RESOURCE: ("attributes", 1, Kind::Message(&KEY_VALUE)));
schema!(SCOPE: ("name", 1, Kind::Text), ("version", 2, Kind::Text));
schema!(LOG_RECORD:
    ("timeUnixNano", 1, Kind::Fixed64), ("severityNumber", 2, Kind::Varint), ("severityText", 3, Kind::Text),
    ("body", 5, Kind::Message(&ANY_VALUE)), ("attributes", 6, Kind::Message(&KEY_VALUE)), ("traceId", 9, Kind::Hex),
    ("spanId", 10, Kind::Hex), ("observedTimeUnixNano", 11, Kind::Fixed64), ("eventName", 12, Kind::Text));
schema!(SCOPE_LOGS: ("scope", 1, Kind::Message(&SCOPE)), ("logRecords", 2, Kind::Message(&LOG_RECORD)), ("schemaUrl", 3, Kind::Text));
schema!(RESOURCE_LOGS:
    ("resource", 1, Kind::Message(&RESOURCE)), ("scopeLogs", 2, Kind::Message(&SCOPE_LOGS)), ("schemaUrl", 3, Kind::Text));
schema!(LOGS: ("resourceLogs", 1, Kind::Message(&RESOURCE_LOGS)));
schema!(STATUS: ("message", 2, Kind::Text), ("code", 3, Kind::Varint));
schema!(SPAN:
    ("traceId", 1, Kind::Hex), ("spanId", 2, Kind::Hex), ("parentSpanId", 4, Kind::Hex), ("name", 5, Kind::Text),
    ("kind", 6, Kind::Varint), ("startTimeUnixNano", 7, Kind::Fixed64), ("endTimeUnixNano", 8, Kind::Fixed64),
    ("attributes", 9, Kind::Message(&KEY_VALUE)), ("status", 15, Kind::Message(&STATUS)));
schema!(SCOPE_SPANS: ("scope", 1, Kind::Message(&SCOPE)), ("spans", 2, Kind::Message(&SPAN)), ("schemaUrl", 3, Kind::Text));
schema!(RESOURCE_SPANS:
    ("resource", 1, Kind::Message(&RESOURCE)), ("scopeSpans", 2, Kind::Message(&SCOPE_SPANS)), ("schemaUrl", 3, Kind::Text));
schema!(SPANS: ("resourceSpans", 1, Kind::Message(&RESOURCE_SPANS)));
schema!(POINT:
    ("startTimeUnixNano", 2, Kind::Fixed64), ("timeUnixNano", 3, Kind::Fixed64), ("count", 4, Kind::Fixed64),
    ("sum", 5, Kind::Double), ("bucketCounts", 6, Kind::PackedFixed64), ("explicitBounds", 7, Kind::PackedDouble),
    ("attributes", 9, Kind::Message(&KEY_VALUE)));
schema!(HISTOGRAM: ("dataPoints", 1, Kind::Message(&POINT)), ("aggregationTemporality", 2, Kind::Varint));
schema!(METRIC:
    ("name", 1, Kind::Text), ("description", 2, Kind::Text), ("unit", 3, Kind::Text), ("histogram", 9, Kind::Message(&HISTOGRAM)));
schema!(SCOPE_METRICS: ("scope", 1, Kind::Message(&SCOPE)), ("metrics", 2, Kind::Message(&METRIC)), ("schemaUrl", 3, Kind::Text));
schema!(RESOURCE_METRICS:
    ("resource", 1, Kind::Message(&RESOURCE)), ("scopeMetrics", 2, Kind::Message(&SCOPE_METRICS)), ("schemaUrl", 3, Kind::Text));
schema!(METRICS: ("resourceMetrics", 1, Kind::Message(&RESOURCE_METRICS)));

/// Protobuf wire type of a varint.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// Converts a request that contains logs, spans or metrics to protobuf.
pub(super) fn to_protobuf(request: &Value) -> Vec<u8> {
    let schema = if request.get("resourceLogs").is_some() {
        &LOGS
    } else if request.get("resourceSpans").is_some() {
        &SPANS
    } else {
        &METRICS
    };
    message(schema, request)
}

fn message(schema: &Schema, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, number, kind) in schema.0 {
        match (value.get(name), kind) {
            (None | Some(Value::Null), _) => {}
            (Some(Value::Array(items)), Kind::PackedFixed64) => {
                let packed: Vec<u8> = items.iter().flat_map(|item| unsigned(item).to_le_bytes()).collect();
                delimited(&mut bytes, *number, &packed);
            }
            (Some(Value::Array(items)), Kind::PackedDouble) => {
                let packed: Vec<u8> = items.iter().flat_map(|item| double(item).to_le_bytes()).collect();
                delimited(&mut bytes, *number, &packed);
            }
            (Some(Value::Array(items)), kind) => items.iter().for_each(|item| field(&mut bytes, *number, *kind, item)),
            (Some(item), kind) => field(&mut bytes, *number, *kind, item),
        }
    }
    bytes
}

fn field(bytes: &mut Vec<u8>, number: u32, kind: Kind, value: &Value) {
    match kind {
        Kind::Text => delimited(bytes, number, value.as_str().unwrap_or_default().as_bytes()),
        Kind::Hex => delimited(bytes, number, &from_hex(value.as_str().unwrap_or_default())),
        Kind::Bool => {
            tag(bytes, number, VARINT);
            varint(bytes, u64::from(value.as_bool().unwrap_or_default()));
        }
        Kind::Varint => {
            tag(bytes, number, VARINT);
            varint(bytes, unsigned(value));
        }
        Kind::Int => {
            tag(bytes, number, VARINT);
            varint(bytes, signed(value).cast_unsigned());
        }
        Kind::Fixed64 => {
            tag(bytes, number, FIXED64);
            bytes.extend(unsigned(value).to_le_bytes());
        }
        Kind::Double => {
            tag(bytes, number, FIXED64);
            bytes.extend(double(value).to_le_bytes());
        }
        Kind::Message(schema) => delimited(bytes, number, &message(schema, value)),
        // The list is encoded as a whole elsewhere.
        Kind::PackedFixed64 | Kind::PackedDouble => {}
    }
}

fn tag(bytes: &mut Vec<u8>, number: u32, wire: u32) {
    varint(bytes, u64::from(number << 3 | wire));
}

fn delimited(bytes: &mut Vec<u8>, number: u32, content: &[u8]) {
    tag(bytes, number, BYTES);
    varint(bytes, content.len() as u64);
    bytes.extend_from_slice(content);
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Parses a number. In JSON, 64-bit numbers may be represented as strings.
fn unsigned(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_default()
}

fn signed(value: &Value) -> i64 {
    value.as_i64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_default()
}

fn double(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap_or_default() as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | pair.get(1).map_or(0, |low| digit(*low))).collect()
}

/// Returns the number of rejected records in a protobuf response, which is field 1 of the message in field 1.
pub(super) fn rejected_count(response: &[u8]) -> u64 {
    first_field(response, BYTES).and_then(|(partial, _)| first_field(partial, VARINT)).map_or(0, |(_, number)| number)
}

/// Returns field 1 of a message if it has this wire type: its bytes and its value as a number.
fn first_field(message: &[u8], wire: u32) -> Option<(&[u8], u64)> {
    let mut rest = message;
    if read_varint(&mut rest)? != u64::from(1 << 3 | wire) {
        return None;
    }
    let number = read_varint(&mut rest)?;
    if wire == VARINT {
        return Some((&[], number));
    }
    Some((rest.get(..usize::try_from(number).ok()?)?, 0))
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_encoded_as_protobuf() {
        let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{
            "timeUnixNano": "1", "severityNumber": 9, "body": {"stringValue": "hi"}, "traceId": "0102",
            "attributes": [{"key": "n", "value": {"intValue": "-1"}}, {"key": "b", "value": {"boolValue": true}}],
        }]}]}]});
        let body = [0x2a, 4, 0x0a, 2, b'h', b'i'];
        let number = [0x32, 16, 0x0a, 1, b'n', 0x12, 11, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        let flag = [0x32, 7, 0x0a, 1, b'b', 0x12, 2, 0x10, 1];
        let record = [&[0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0x10, 9][..], &body, &number, &flag, &[0x4a, 2, 1, 2]].concat();
        let wrap = |tag: u8, inner: &[u8]| [&[tag, inner.len() as u8][..], inner].concat();
        assert_eq!(to_protobuf(&request), wrap(0x0a, &wrap(0x12, &wrap(0x12, &record))));
        let metric = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"histogram": {"dataPoints": [
            {"count": "2", "sum": 1.0, "bucketCounts": ["1", "1"], "explicitBounds": [0.5]}], "aggregationTemporality": 1}}]}]}]});
        let point = [
            &[0x21, 2, 0, 0, 0, 0, 0, 0, 0, 0x29, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x32, 16][..],
            &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x3a, 8, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f],
        ]
        .concat();
        let histogram = [wrap(0x0a, &point), vec![0x10, 1]].concat();
        assert_eq!(to_protobuf(&metric), wrap(0x0a, &wrap(0x12, &wrap(0x12, &wrap(0x4a, &histogram)))));
    }

    #[test]
    fn rejected_records_are_read_from_any_response() {
        assert_eq!(rejected_count(&[0x0a, 3, 0x08, 0x96, 0x01]), 150);
        for bytes in [&[][..], &[0x0a], &[0x0a, 9, 8], &[0xff; 20], &[0x0a, 0], b"{\"x\": 1}"] {
            assert_eq!(rejected_count(bytes), 0, "{bytes:?}");
        }
    }
}

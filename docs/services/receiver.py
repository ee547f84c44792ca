#!/usr/bin/env python3
"""A small receiver for aye's services, to try them out and as a starting point for your own: python3 receiver.py PORT

It prints one line per record, and stores nothing. Paths:
  /approvals                          decisions, and questions: low and medium risk is approved, everything else is denied
  /v1/logs, /v1/traces, /v1/metrics   OpenTelemetry; set OTEL_EXPORTER_OTLP_PROTOCOL=http/json for aye

AYE_APPROVAL_SECRET contains the same secret as for aye. Needs Python 3.9 or later and nothing else. It listens on 127.0.0.1 only.
"""

import base64
import gzip
import hashlib
import hmac
import json
import os
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MAX_BYTES = 8 << 20
MAX_AGE_SECONDS = 300
APPROVED = ("none", "low", "medium")
seen = set()


def key():
    secret = os.environ.get("AYE_APPROVAL_SECRET", "")
    if len(secret) < 16:
        sys.exit("receiver.py: set AYE_APPROVAL_SECRET to a secret of at least 16 characters")
    return base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()


def sign(message_id, timestamp, body):
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key(), signed, hashlib.sha256).digest()).decode()


def is_signed(headers, body):
    message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > MAX_AGE_SECONDS:
        return False
    expected = sign(message_id, timestamp, body)
    return any(hmac.compare_digest(expected, given) for given in headers.get("webhook-signature", "").split(" "))


def decide(data):
    """Returns the decision on a question and the reason. Replace this with your own rules, or ask a person."""
    request = data["request"]
    risk = "critical" if request.get("critical") else request.get("riskLevel", "critical")
    return ("approved", None) if risk in APPROVED else ("denied", f"the risk is {risk}")


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BYTES:
            return self.respond(413)
        body = self.rfile.read(length)
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if self.path == "/approvals":
            return self.approvals(body)
        if self.path in ("/v1/logs", "/v1/traces", "/v1/metrics"):
            return self.telemetry(body)
        return self.respond(404)

    def approvals(self, body):
        if not is_signed(self.headers, body):
            return self.respond(401)
        message = json.loads(body)
        data = message["data"]
        if message["type"] != "approval.requested":
            # A record can arrive twice: the id is the same.
            if self.headers["webhook-id"] not in seen:
                seen.add(self.headers["webhook-id"])
                show(message["type"], f"{data.get('decision')} by {data.get('decidedBy')}: {data.get('actionSummary')}")
            return self.respond(204)
        decision, reason = decide(data)
        show("question", f"{decision}: {data['request'].get('actionSummary')}")
        answer = {"approvalId": data["approvalId"], "nonce": data["nonce"], "digest": data["digest"], "decision": decision}
        if reason:
            answer["reason"] = reason
        reply = json.dumps({"type": "approval.answered", "data": answer}).encode()
        message_id, timestamp = f"msg_{uuid.uuid4().hex}", str(int(time.time()))
        headers = {"webhook-id": message_id, "webhook-timestamp": timestamp}
        return self.respond(200, reply, {**headers, "webhook-signature": sign(message_id, timestamp, reply)})

    def telemetry(self, body):
        if "json" not in self.headers.get("content-type", ""):
            return self.respond(415)
        for kind, names in (("resourceLogs", "logRecords"), ("resourceSpans", "spans"), ("resourceMetrics", "metrics")):
            for resource in json.loads(body).get(kind, []):
                for scope in resource.get("scopeLogs", []) + resource.get("scopeSpans", []) + resource.get("scopeMetrics", []):
                    for record in scope.get(names, []):
                        show(names, record.get("eventName") or record.get("name"))
        return self.respond(200, b"{}")

    def respond(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **dict(headers)}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def show(kind, text):
    print(f"{kind}: {text}".encode("ascii", "backslashreplace").decode(), flush=True)


if __name__ == "__main__":
    key()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 4318), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()

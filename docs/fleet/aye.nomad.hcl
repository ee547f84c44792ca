# One aye task as a Nomad batch job, with the program installed on the clients. Replace the values in capitals.
# Dispatch a run: nomad job dispatch -meta name=fix-flaky-test -meta prompt="Find out why …" aye
job "aye" {
  type        = "batch"
  datacenters = ["dc1"]

  parameterized {
    meta_required = ["name", "prompt"]
  }

  group "task" {
    restart {
      attempts = 0
    }

    reschedule {
      attempts  = 3
      interval  = "2h"
      delay     = "30s"
      unlimited = false
    }

    ephemeral_disk {
      size = 10000
    }

    task "aye" {
      driver       = "exec"
      kill_timeout = "60s"
      user         = "aye"

      config {
        command = "/usr/local/bin/aye-job"
      }

      env {
        AYE_JOB_NAME   = "${NOMAD_META_name}"
        AYE_JOB_PROMPT = "${NOMAD_META_prompt}"
        AYE_JOB_POLICY = "${NOMAD_SECRETS_DIR}/policy.toml"
        AYE_JOB_OUT    = "${NOMAD_ALLOC_DIR}/logs"
        AWS_REGION     = "REGION"
      }

      template {
        destination = "${NOMAD_SECRETS_DIR}/keys.env"
        env         = true
        data        = <<-EOT
          ANTHROPIC_API_KEY={{ with nomadVar "nomad/jobs/aye" }}{{ .anthropic_api_key }}{{ end }}
          AWS_ACCESS_KEY_ID={{ with nomadVar "nomad/jobs/aye" }}{{ .access_key_id }}{{ end }}
          AWS_SECRET_ACCESS_KEY={{ with nomadVar "nomad/jobs/aye" }}{{ .secret_access_key }}{{ end }}
        EOT
      }

      resources {
        cpu    = 1000
        memory = 2048
      }
    }
  }
}

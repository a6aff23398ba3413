{{/* Labels that select the pods; they must not change during a release's life. */}}
{{- define "svc.selector" -}}
app.kubernetes.io/name: svc
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "svc.labels" -}}
{{ include "svc.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Settings that the chart knows itself; `config` overrides them. */}}
{{- define "svc.config" -}}
{{- $own := dict "manifests" "manifests.yaml" "policy" "policy.yaml" "store" "postgres" "database_url" "${DATABASE_URL}" }}
{{- $_ := set $own "listen" (dict "host" "0.0.0.0" "port" 8787) }}
{{- $_ := set $own "log" (dict "format" "json" "level" "info" "requests" true) }}
{{- $_ := set $own "metrics_public" .Values.metrics }}
{{- if .Values.signing }}
{{- $_ := set $own "signing_key" "/etc/svc-secrets/signing.key" }}
{{- end }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

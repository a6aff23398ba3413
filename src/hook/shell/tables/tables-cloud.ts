/**
 * Table of the reading commands of container and cloud tools. Commands that print the environment of a service are not
 * listed, because secrets are among it. The same goes for options that name another endpoint, profile, configuration
 * or output file. tables.ts explains the form of a line.
 */

const BUILD =
  "-q -t:% -f: --tag=% --file= --target=% --build-arg= --no-cache --pull --progress=% --platform=% --label= --quiet --rm --force-rm --load --check --provenance=% --sbom=% --no-cache-filter=% @1 (?![\\w+]+:|git@|-)[\\w./-]+";
const AWS =
  "--region=% --output=% --query= --no-cli-pager --no-paginate --max-items=% --page-size=% --starting-token= --color=% --filters= --filter= --max-results=%";
const GCLOUD =
  "-q --project=% --region=% --zone=% --location=% --format= --filter= --limit=% --sort-by=% --page-size=% --uri --quiet --verbosity=% --regions=% --zones=%";
const AZ =
  "-o:% -g:% -n:% --output=% --query= --resource-group=% --name=% --only-show-errors --location=% --show-details -d -l:%";
const KUBE_SCOPE = "-n:% --namespace=%";
const GH = "-R:% --repo= -L:% --limit=% --json=% -q: --jq= -t: --template=";
/** A repository on the usual host. */
const GH_REPO = "[^/]*|[\\w.-]+/[\\w.-]+";
const HELM = "-n:% -o:% --namespace=% --output=%";

export const CLOUD_TABLE = `
docker: read -v --version
docker ps: read -alqsn? --all --filter= --format= --quiet --no-trunc --latest --size --last=%
docker images: read -aq --all --filter= --format= --quiet --no-trunc --digests
docker image ls: read -aq --all --filter= --format= --quiet --no-trunc --digests
docker container ls: read -alqs --all --filter= --format= --quiet --no-trunc
docker volume ls: read -q --filter= --format= --quiet
docker network ls: read -q --filter= --format= --quiet --no-trunc
docker logs: read -ft -n:% --follow --tail=% --since=% --until=% --timestamps --details
docker inspect: read -s -f: --format= --type=% --size
docker version: read -f: --format=
docker info: read -f: --format=
docker port: read
docker diff: read
docker top: read
docker stats: read -a --all --no-stream --format= --no-trunc
docker build: build ${BUILD}
docker buildx build: build ${BUILD}
docker image build: build ${BUILD}
docker buildx ls: read
docker context ls: read -q --format=
docker compose ps: read -aq --all --services --quiet --format= --status=% --filter=%
docker compose config (?:--services|--profiles|--volumes): read @0
docker compose ls: read -aq --all --format=
docker compose logs: read -ft -n:% --follow --tail=% --since=% --until=% --timestamps --no-color --no-log-prefix
docker compose top: read
docker compose images: read -q --quiet --format=%
docker compose version: read --short --format=%
docker system df: read -v --verbose --format=
kubectl: read ${KUBE_SCOPE}
kubectl get: read -Aw ${KUBE_SCOPE} -o:l:L:% --all-namespaces --output=% --selector=% --watch --show-labels --sort-by= --field-selector=% --no-headers --show-kind --label-columns=% --ignore-not-found
kubectl describe: read -A ${KUBE_SCOPE} -l:% --all-namespaces --selector=% --show-events
kubectl logs: read -fp ${KUBE_SCOPE} -c:l:% --follow --tail=% --since=% --container=% --previous --timestamps --all-containers --selector=% --prefix
kubectl version: read -o:% --client --output=% --short
kubectl api-resources: read -o:% --namespaced=% --output=% --api-group=% --no-headers
kubectl api-versions: read
kubectl explain: read --recursive --api-version=%
kubectl cluster-info: read @0
kubectl top: read -A ${KUBE_SCOPE} -l:% --containers --sort-by=% --all-namespaces --no-headers
kubectl rollout status: read -w ${KUBE_SCOPE} --timeout=% --watch --revision=%
kubectl rollout history: read ${KUBE_SCOPE} --revision=%
kubectl config current-context: read @0
kubectl config get-contexts: read -o:% --output=% --no-headers
kubectl config get-clusters: read @0
kubectl auth can-i: read ${KUBE_SCOPE} -q --list --quiet --all-namespaces
kubectl events: read -A ${KUBE_SCOPE} --for=% --types=% --all-namespaces --watch -w
kubectl wait: read ${KUBE_SCOPE} -l:% --for=% --timeout=% --selector=% --all
kubectl diff: unknown
terraform: read one-dash --version --v
terraform plan: read one-dash --no-color --input=% --refresh=% --target= --var= --compact-warnings --lock=% --detailed-exitcode --refresh-only --parallelism=% --json
terraform validate: read one-dash --json --no-color
terraform fmt: format one-dash --check --diff --recursive --list=% --write=% --no-color
terraform show: read one-dash --no-color @0
terraform version: read one-dash --json
terraform providers: read @0
terraform workspace list: read @0
terraform workspace show: read @0
terraform state list: read one-dash --id=%
terraform state show: read one-dash --no-color
terraform graph: read one-dash --type=% @0
terraform output: read one-dash --no-color @0
helm: read
helm list: read -aAq ${HELM} --all --all-namespaces --filter= --short --max=% --deployed --failed --pending
helm ls: read -aAq ${HELM} --all --all-namespaces --filter= --short --max=% --deployed --failed --pending
helm status: read ${HELM} --revision=% --show-resources
helm history: read ${HELM} --max=%
helm version: read --short --client
helm repo list: read -o:% @0
helm search repo: read -lr --versions --devel --version=%
helm dependency list: read
aws: read --version --region=% --output=% --no-cli-pager --color=%
aws s3 ls: read ${AWS} --recursive --human-readable --summarize @1
aws s3api list-*: read ${AWS} --bucket=% --prefix= --delimiter= --key=
aws s3api head-*: read ${AWS} --bucket=% --key=
aws sts get-caller-identity: read ${AWS} @0
aws ec2 describe-(?!instance-attribute|launch-template-versions|spot)*: read ${AWS} --instance-ids=% --image-ids=% --owners=% --vpc-ids=% --subnet-ids=% --group-ids=% --group-names=% --volume-ids=% --snapshot-ids=% --owner-ids=% --include-all-instances --allocation-ids=% --key-names=%
aws elbv2 describe-*: read ${AWS} --names=% --load-balancer-arn=% --load-balancer-arns= --target-group-arn= --listener-arn=
aws elb describe-*: read ${AWS} --load-balancer-names=%
aws autoscaling describe-(?!launch)*: read ${AWS} --auto-scaling-group-names=% --auto-scaling-group-name=%
aws rds describe-*: read ${AWS} --db-instance-identifier=% --db-cluster-identifier=% --duration=% --source-identifier=% --source-type=%
aws dynamodb list-*: read ${AWS}
aws dynamodb describe-*: read ${AWS} --table-name=%
aws ecs list-*: read ${AWS} --cluster=% --service-name=% --family-prefix=% --status=% --desired-status=%
aws ecs describe-(?:clusters|services): read ${AWS} --cluster=% --clusters=% --services=% --include=%
aws ecr describe-*: read ${AWS} --repository-name=% --repository-names=% --image-ids=%
aws ecr list-images: read ${AWS} --repository-name=%
aws eks list-*: read ${AWS} --cluster-name=%
aws eks describe-*: read ${AWS} --name=% --cluster-name=% --nodegroup-name=%
aws cloudformation list-*: read ${AWS} --stack-name=% --stack-status-filter=%
aws cloudformation describe-(?:stack-events|stack-resources|stack-resource): read ${AWS} --stack-name=% --logical-resource-id=%
aws cloudwatch (?:describe|list)-*: read ${AWS} --alarm-names=% --namespace= --metric-name=% --state-value=% --alarm-name-prefix=%
aws cloudwatch get-metric-statistics: read ${AWS} --namespace= --metric-name=% --start-time=% --end-time=% --period=% --statistics=% --dimensions=%
aws logs describe-*: read ${AWS} --log-group-name= --log-group-name-prefix= --log-stream-name-prefix= --order-by=% --descending
aws logs tail: read ${AWS} --since=% --until=% --follow --format=% --filter-pattern= --log-stream-names= --log-stream-name-prefix=
aws logs filter-log-events: read ${AWS} --log-group-name= --log-stream-names= --filter-pattern= --start-time=% --end-time=% --limit=%
aws logs get-log-events: read ${AWS} --log-group-name= --log-stream-name= --limit=% --start-time=% --end-time=% --start-from-head
aws sns list-*: read ${AWS} --topic-arn=%
aws sqs list-queues: read ${AWS} --queue-name-prefix=%
aws sqs get-queue-attributes: read ${AWS} --queue-url= --attribute-names=%
aws route53 list-*: read ${AWS} --hosted-zone-id=%
aws acm (?:list|describe)-*: read ${AWS} --certificate-arn=
aws iam list-*: read ${AWS} --user-name=% --role-name=% --group-name=% --policy-arn= --scope=% --path-prefix=
aws iam get-(?:user|role|policy|group|policy-version|account-summary): read ${AWS} --user-name=% --role-name=% --group-name=% --policy-arn= --version-id=%
aws kms (?:list|describe)-*: read ${AWS} --key-id=
aws secretsmanager list-secrets: read ${AWS}
aws ssm describe-*: read ${AWS} --parameter-filters=
aws stepfunctions list-*: read ${AWS} --state-machine-arn= --status-filter=%
aws events list-*: read ${AWS} --rule=% --event-bus-name=%
aws cloudfront list-*: read ${AWS}
aws elasticache describe-*: read ${AWS} --cache-cluster-id=% --replication-group-id=%
aws ce get-cost-and-usage: read ${AWS} --time-period=% --granularity=% --metrics=% --group-by=%
aws configure list: read @0
aws configure list-profiles: read @0
gcloud: read --version --project=% --quiet -q
gcloud version: read @0
gcloud info: read @0
gcloud config list: read ${GCLOUD} @0
gcloud config get-value: read project|account|compute/region|compute/zone|core/project|core/account
gcloud config get: read project|account|compute/region|compute/zone|core/project|core/account
gcloud config configurations list: read ${GCLOUD} @0
gcloud auth list: read ${GCLOUD} @0
gcloud projects (?:list|describe): read ${GCLOUD}
gcloud compute (?:instances|disks|networks|firewall-rules|addresses|regions|zones|machine-types|images|snapshots|forwarding-rules|backend-services|instance-groups) list: read ${GCLOUD} @0
gcloud compute (?:disks|networks|firewall-rules|addresses|images|snapshots|backend-services|forwarding-rules) describe: read ${GCLOUD} --global @1
gcloud compute networks subnets list: read ${GCLOUD} @0
gcloud run services list: read ${GCLOUD} --platform=% @0
gcloud run (?:jobs|revisions) list: read ${GCLOUD} --service=% @0
gcloud functions list: read ${GCLOUD} @0
gcloud functions logs read: read ${GCLOUD} --start-time=% --end-time=% --min-log-level=%
gcloud logging read: read ${GCLOUD} --freshness=% --order=% @1
gcloud logging logs list: read ${GCLOUD} @0
gcloud container clusters (?:list|describe): unknown
gcloud container images list: read ${GCLOUD} --repository=
gcloud container images list-tags: read ${GCLOUD}
gcloud artifacts (?:repositories|packages|versions) list: read ${GCLOUD} --repository=% --package=%
gcloud artifacts docker images list: read ${GCLOUD} --include-tags
gcloud builds list: read ${GCLOUD} --ongoing @0
gcloud builds log: read ${GCLOUD} --stream @1
gcloud sql (?:instances|databases|backups) list: read ${GCLOUD} --instance=% -i:%
gcloud sql instances describe: read ${GCLOUD} @1
gcloud pubsub (?:topics|subscriptions) (?:list|describe): read ${GCLOUD}
gcloud storage ls: read -lLr --long --recursive --json
gcloud storage buckets list: read ${GCLOUD}
gcloud dns (?:managed-zones|record-sets) list: read ${GCLOUD}
gcloud services list: read ${GCLOUD} --enabled --available
gcloud iam (?:roles|service-accounts) (?:list|describe): read ${GCLOUD}
gcloud secrets list: read ${GCLOUD} @0
gcloud app (?:services|versions|instances) list: read ${GCLOUD}
az: read --version --only-show-errors
az version: read -o:% --output=%
az account (?:show|list|list-locations): read ${AZ} --all --refresh
az group (?:list|show|exists): read ${AZ} --tag=%
az resource (?:list|show): read ${AZ} --resource-type= --ids=
az vm (?:list|list-sizes|list-ip-addresses|get-instance-view): read ${AZ}
az vm show: read ${AZ}
az vmss (?:list|show|list-instances): read ${AZ}
az disk (?:list|show): read ${AZ}
az snapshot (?:list|show): read ${AZ}
az network (?:vnet|nsg|public-ip|nic|lb|application-gateway|private-endpoint) (?:list|show): read ${AZ}
az network vnet subnet (?:list|show): read ${AZ} --vnet-name=%
az network nsg rule (?:list|show): read ${AZ} --nsg-name=%
az network dns zone (?:list|show): read ${AZ}
az aks (?:list|show|get-versions|get-upgrades): read ${AZ}
az aks nodepool (?:list|show): read ${AZ} --cluster-name=%
az acr (?:list|show): read ${AZ}
az acr repository (?:list|show|show-tags): read ${AZ} --repository=% --image=% --top=% --orderby=% --detail
az storage account (?:list|show|check-name): read ${AZ}
az webapp (?:list|show): read ${AZ}
az functionapp (?:list|show): read ${AZ}
az appservice plan (?:list|show): read ${AZ}
az sql server (?:list|show): read ${AZ}
az sql db (?:list|show): read ${AZ} --server=% -s:%
az cosmosdb (?:list|show): read ${AZ}
az keyvault (?:list|show): read ${AZ}
az keyvault secret list: read ${AZ} --vault-name=% --id=
az monitor (?:metrics|activity-log|alert) list: read ${AZ} --resource= --metric=% --interval=% --offset=%
az monitor log-analytics workspace (?:list|show): read ${AZ}
az pipelines (?:list|show): read ${AZ}
az pipelines runs (?:list|show): read ${AZ} --id=% --top=% --branch=%
az repos pr (?:list|show): read ${AZ} --id=% --status=% --top=%
az boards work-item show: read ${AZ} --id=%
az deployment group (?:list|show): read ${AZ}
az role assignment list: read ${AZ} --assignee=% --all --scope=
az ad signed-in-user show: read ${AZ}
gh: read --version
gh version: read @0
gh status: read -o:% --org=%
gh auth status: read -a --active @0
gh api: read -q: --jq= --paginate --cache=% @1 repos/(?:\\{owner\\}/\\{repo\\}|[\\w-][\\w.-]*/[\\w-][\\w.-]*)/(?:pulls|issues|commits|compare|releases|branches|tags|labels|contributors)(?:/\\w[\\w.-]*)*(?:\\?[\\w=&-]*)?
gh pr list: read ${GH} -s:% -l:% -A:% -a:% -B:% -H:% -S: -d --state=% --label= --author=% --assignee=% --base= --head= --search= --draft
gh pr view: read -c ${GH} --comments
gh pr status: read ${GH}
gh pr diff: read -R:% --repo= --patch --name-only --color=%
gh pr checks: read ${GH} --required --watch --fail-fast -i:% --interval=%
gh issue list: read ${GH} -s:% -l: -A:% -a:% -m: -S: --state=% --label= --author=% --assignee=% --milestone= --search= --mention=%
gh issue view: read -c ${GH} --comments
gh issue status: read ${GH}
gh run list: read ${GH} -w: -b:% -u:% -s:% -e:% --workflow= --branch= --user=% --status=% --event=% --commit=%
gh run view: read -v -a:% -j:% ${GH} --log --log-failed --job=% --attempt=% --verbose --exit-status
gh run watch: read -R:% --repo= -i:% --interval=% --exit-status --compact
gh workflow list: read -a ${GH} --all
gh workflow view: read -y ${GH} --yaml -r:% --ref=%
gh repo view: read ${GH} -b:% --branch= ${GH_REPO}
gh repo list: read ${GH} --source --fork --visibility=% --language=% --topic=% --no-archived
gh release list: read ${GH} --exclude-drafts --exclude-pre-releases
gh release view: read ${GH}
gh label list: read ${GH} -S: --search= --sort=% --order=%
gh cache list: read ${GH} -S:% -O:% --sort=% --order=% --key= --ref=
gh search (?:repos|issues|prs|code|commits): read ${GH} --owner=% --language=% --state=% --author=% --label= --sort=% --order=% --filename= --extension=% --match=%
gh project list: read -L:% --owner=% --limit=% --format=%
gh ruleset list: read ${GH}
gh browse: unknown
`;

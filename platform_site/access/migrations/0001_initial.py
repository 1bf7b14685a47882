import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.lookups
import uuid_utils.compat
from django.db import migrations, models


def make_default_tenant(apps, schema_editor):
    """Owner of everything until someone makes a second tenant; see platform_site.access.tenants."""
    apps.get_model("access", "Tenant").objects.get_or_create(slug="default", defaults={"name": "Default"})


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Tenant',
            fields=[
                ('id', models.AutoField(primary_key=True, serialize=False)),
                ('slug', models.CharField(max_length=63, unique=True)),
                ('name', models.CharField(max_length=128)),
                ('max_running', models.PositiveIntegerField(blank=True, help_text='Running tasks; empty is no limit.', null=True)),
                ('max_queued', models.PositiveIntegerField(blank=True, help_text='Queued tasks; empty is no limit.', null=True)),
                ('turn_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False, help_text='Smallest is served first; moved on by the coordinator.')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
            ],
            options={
                'ordering': ['slug'],
                'constraints': [models.CheckConstraint(condition=models.Q(('slug__regex', '^[a-z0-9][a-z0-9-]{0,62}$')), name='tenant_slug_plain')],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyRecord',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('principal_id', models.CharField(max_length=128)),
                ('operation', models.CharField(max_length=64)),
                ('key', models.CharField(max_length=255)),
                ('digest', models.BinaryField(max_length=32)),
                ('facts', models.JSONField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='access.tenant')),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='idempotency_expiry')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'principal_id', 'operation', 'key'), name='idempotency_scope_unique'), models.CheckConstraint(condition=django.db.models.lookups.Exact(models.Func(models.F('digest'), function='OCTET_LENGTH', output_field=models.IntegerField()), 32), name='idempotency_digest_sha256')],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('account', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False)),
                ('name', models.CharField(max_length=128)),
                ('role', models.CharField(choices=[('viewer', 'viewer'), ('operator', 'operator'), ('admin', 'admin'), ('worker-enrolment', 'worker-enrolment')], max_length=32)),
                ('prefix', models.CharField(help_text='The visible part of the token.', max_length=16, unique=True)),
                ('digest', models.BinaryField(max_length=32, unique=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, help_text='Written at most once a minute.', null=True)),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='access.tenant')),
            ],
            options={
                'verbose_name': 'API token',
                'ordering': ['-created_at'],
                'constraints': [models.CheckConstraint(condition=models.Q(('role__in', ['viewer', 'operator', 'admin', 'worker-enrolment'])), name='api_token_role_known'), models.CheckConstraint(condition=django.db.models.lookups.Exact(models.Func(models.F('digest'), function='OCTET_LENGTH', output_field=models.IntegerField()), 32), name='api_token_digest_sha256'), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='api_token_name_given')],
            },
        ),
        migrations.RunPython(make_default_tenant, migrations.RunPython.noop),
    ]

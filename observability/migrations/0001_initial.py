import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='MetricsSnapshot',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('taken_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('data', models.JSONField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='metrics_snapshot_single_row')],
            },
        ),
    ]

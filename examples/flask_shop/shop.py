from flask import Flask, jsonify, request

from rqueue import InvalidName, JobFailed, ResultError, ResultTimeout, UnknownJob
from rqueue.contrib.flask import Rqueue
from tasks import send_receipt

rqueue = Rqueue()


def create_app():
    app = Flask(__name__)
    app.config["SHOP"] = "Ada's Shop"
    app.config.from_prefixed_env()  # FLASK_RQUEUE_URL=redis://..., in production
    rqueue.init_app(app)

    @app.post("/orders")
    def place_order():
        job = send_receipt.enqueue(request.form["email"])
        return jsonify(job=job.id), 202

    @app.get("/receipts/<job_id>")
    def receipt(job_id):
        try:
            return jsonify(receipt=rqueue.queue("mail").job(job_id).result(timeout=5))
        except ResultTimeout as error:
            return jsonify(state=error.state), 202
        except JobFailed as error:
            return jsonify(state="dead", error=error.type), 500
        except (UnknownJob, InvalidName):
            return jsonify(state="unknown"), 404
        except ResultError as error:  # cancelled, or its result is no longer kept
            return jsonify(error=str(error)), 410

    return app
